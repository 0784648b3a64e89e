"""Settings of a model as they are given on a command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.own.settings import OwnSettings, find
from truesource.lmtrain.references import is_own
from truesource.run.reading import parse_value


def given_settings(architecture: str, overrides: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The keys ``model`` and ``training`` of a model entry.

    Args:
        architecture: a name, or a reference to code of one's own, whose objective is asked where it is not given.
        overrides: ``model.KEY=VALUE`` and ``training.KEY=VALUE`` with YAML values.

    Raises:
        InputError: an override is written otherwise, or changes the architecture; the code cannot be imported.
    """
    values: dict[str, dict[str, Any]] = {"model": {"architecture": architecture}, "training": {}}
    for override in overrides:
        key, _, text = override.partition("=")
        section, _, name = key.partition(".")
        if section not in values or not name or not text:
            raise InputError(f"write --set as model.KEY=VALUE or training.KEY=VALUE, not as {override!r}")
        if key == "model.architecture":
            raise InputError("use --model for the architecture, not --set")
        values[section][name] = parse_value(override, text)
    if "objective" not in values["model"] and is_own(architecture):
        stated = find(OwnSettings(architecture=architecture)).objective  # named on the command line, so it may be run
        values["model"] |= {} if stated is None else {"objective": stated}
    return values


def plain_name(text: str) -> str:
    """A name of letters, digits, dots, hyphens and underscores, made from a text."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("._-") or "model"
