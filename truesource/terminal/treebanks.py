"""Treebanks that verbs read: their settings, and reports on reading them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.support.errors import InputError
from truesource.terminal.console import echo

if TYPE_CHECKING:
    from truesource.grammar.conventions import Name
    from truesource.grammar.treebank import Normalisation, Treebank

_TEXTS = ("annotation", "root")  #: settings of trees whose values are always text, even if YAML reads another type
_NULLS = ("", "~", "null")  #: missing values in YAML


def is_treebank(source: Path) -> bool:
    """Return True if a file, or most of a folder that is not a corpus, run or model, holds trees."""
    from truesource.grammar.support.folders import kind_of
    from truesource.grammar.treebank.files import begins_like_trees, find_files

    if source.is_file():
        return begins_like_trees(source)
    if not source.is_dir() or kind_of(source) not in (None, "trees"):
        return False
    try:
        return any(map(begins_like_trees, find_files(source)))
    except InputError:
        return False


def normalisation(convention: Name, overrides: list[str] | None) -> Normalisation:
    """Return the normalisation of the trees of a treebank.

    Args:
        convention: annotation convention of the treebank.
        overrides: further settings as KEY=VALUE.

    Raises:
        InputError: a setting does not exist, or has an invalid value.
    """
    from pydantic import TypeAdapter, ValidationError

    from truesource.grammar.support.records import explain
    from truesource.grammar.support.settings import fields_of, none_as_null
    from truesource.grammar.treebank import Normalisation
    from truesource.run.reading import override

    values: dict[str, object] = {"convention": convention}
    for written in overrides or []:
        override(values, written)
        key, _, text = written.partition("=")
        if key in _TEXTS and not isinstance(values[key], str) and text.lower() not in _NULLS:
            values[key] = text
    try:
        return TypeAdapter(Normalisation).validate_python(none_as_null(fields_of(Normalisation), values))
    except ValidationError as error:
        raise InputError(f"--normalisation: {explain(error)}") from error


def show_reading(bank: Treebank, *, has_settings: bool = True) -> None:
    """Print what reading a treebank removed and refused, and warn of signs of another convention.

    Args:
        bank: the treebank.
        has_settings: True if the verb has the option ``--normalisation``.
    """
    for line in bank.reading.lines():
        echo(line)
    warn_of_unread(bank)
    warn_of_signs(bank, has_settings=has_settings)


def warn_of_unread(bank: Treebank) -> None:
    """Warn of files of a folder that begin like trees and were not read."""
    if bank.selection is not None and (warning := bank.selection.warning):
        echo(f"Warning: {warning}", err=True)


def warn_of_signs(bank: Treebank, *, has_settings: bool = True) -> None:
    """Warn of signs that a treebank has another convention; see `show_reading` for arguments."""
    for sign in bank.reading.signs:
        options = " ".join(
            f"--convention {value}" if name == "convention" else f"--normalisation {name}={shlex.quote(value)}"
            for name, value in sign.remedy.items()
        )
        remedy = f"read the treebank with {options}"
        if not has_settings and "--normalisation" in options:
            remedy = f"convert it first: truesource convert {shlex.quote(bank.source)} new.mrg {options}"
        echo(f"Warning: {sign}; {remedy}, or ignore this if they are words", err=True)
