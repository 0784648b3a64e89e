"""Grammar files: one module a format, found by walking this folder, and loading by content.

A module has ``FORMAT``, a `truesource.grammar.formats.shared.format.GrammarFormat`; its name is that of the format.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.suggestions import refuse_other_kind

if TYPE_CHECKING:
    from truesource.grammar.formats.shared.format import GrammarFormat
    from truesource.grammar.rules import GrammarRules

DEFAULT = "text"  #: of what no other format recognises, and of file names that no other format asks for


def names() -> list[str]:
    """All formats, in alphabetical order; quick, for the help of the command."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)


def format_of(name: str) -> GrammarFormat:
    """The format of a name.

    Raises:
        InputError: there is none.
    """
    if name not in names():
        raise InputError(f"there is no grammar format {name!r}; choose one of {', '.join(names())}")
    found: GrammarFormat = importlib.import_module(f"{__name__}.{name}").FORMAT
    return found


def load_rules(
    path: str | Path,
    *,
    normalise: bool = False,
    format: str | None = None,  # noqa: A002
    start: str | None = None,
    lenient: bool = False,
) -> GrammarRules:
    """Read a grammar; what the file holds decides the format, unless it is given.

    Args:
        path: a file, packed (``.gz``) or not; for a Berkeley pair either file, or what their names have in common.
        normalise: take the numbers of a text as weights, divided by the sum of each symbol's. Berkeley and EarleyX
            text is always read so, as their files do not sum to one.
        format: one of `names`.
        start: start symbol, in place of the file's own.
        lenient: as for `truesource.grammar.formats.text.parse_text`, so that a mistake can be shown beside others.

    Raises:
        InputError: the file is absent, damaged, or not a proper grammar.
    """
    from truesource.grammar.formats.shared.format import GrammarSource, ReadOptions

    source = GrammarSource(Path(path))
    if format is None:
        others = (name for name in names() if name != DEFAULT)
        format = next((name for name in others if format_of(name).sniff(source)), DEFAULT)  # noqa: A001
    return format_of(format).read(source, ReadOptions(start, normalise, lenient))


def source_files(path: str | Path) -> list[Path]:
    """The files that make up a grammar, sorted: one, or those of a Berkeley grammar; none of a language's name."""
    found = {file for name in names() for file in format_of(name).sources(Path(path)) if file.is_file()}
    return sorted(found)


def require_source(path: str | Path) -> None:
    """Stop where there is neither a grammar in files nor a language of a name.

    Raises:
        InputError: there is none (code ``missing``), or a folder of another kind, see
            `truesource.grammar.support.suggestions.refuse_other_kind`.
    """
    from truesource.grammar.languages import is_reference, missing

    refuse_other_kind(Path(path), "grammar")
    if not os.path.exists(path) and not is_reference(path) and not source_files(path):  # noqa: PTH110 - any length
        raise missing(path)


def target_format(path: str | Path) -> str:
    """The format that a file's name asks for."""
    suffix = Path(path).suffix
    return next((name for name in names() if suffix in format_of(name).extensions), DEFAULT)


def target_files(path: str | Path, format: str | None = None) -> list[Path]:  # noqa: A002
    """The files that `save_grammar` writes: one, or a Berkeley pair."""
    return format_of(format or target_format(path)).targets(Path(path), None)


def save_grammar(
    pcfg: GrammarRules,
    path: str | Path,
    *,
    force: bool = False,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write a grammar: ``.npz`` for that suffix, else text, unless the format is given; text is packed for ``.gz``.

    Raises:
        InputError: a file exists and ``force`` is false, the format cannot hold the grammar, or it is unknown.
    """
    from truesource.grammar.support.files import refuse_existing

    chosen = format_of(format or target_format(path))
    for target in chosen.targets(Path(path), pcfg):
        refuse_existing(target, force)
    chosen.write(pcfg, Path(path))
