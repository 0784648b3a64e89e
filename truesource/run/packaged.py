"""Configurations that come with truesource and run by name: one YAML file each in the embedded data."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder
from truesource.grammar.support.settings import did_you_mean

SWEEPS = frozenset({"scaling"})  #: names of configurations of `truesource evaluate scaling`

_TITLE = re.compile(r'^title: "?(?:truesource(?: demo)?: )?(?P<title>[^"\n]+)"?$', re.MULTILINE)


@cache
def packaged() -> dict[str, Path]:
    """All configurations by name, in alphabetical order."""
    return {path.stem: path for path in sorted(data_folder().glob("*.yaml"))}


def purpose(name: str) -> str:
    """What a configuration is for: its title."""
    found = _TITLE.search(packaged()[name].read_text(encoding="utf-8"))
    assert found is not None  # a test reads them all
    return found["title"]


def find_config(text: str, *, sweep: bool = False) -> tuple[Path, Path]:
    """A configuration by its path or name; a file of that name comes first.

    Args:
        text: a path, or a name such as ``demo``.
        sweep: whether it is for a sweep.

    Returns:
        The file, and the folder that its relative paths start from: its own, or for names the working folder.

    Raises:
        InputError: there is neither a file nor a name like that, or the name is of the other kind.
    """
    path = Path(text)
    if path.is_file():
        return path, path.resolve().parent
    known = [name for name in packaged() if (name in SWEEPS) == sweep]
    if text in known:
        return packaged()[text], Path.cwd()
    if text in packaged():
        verb = "run" if sweep else "evaluate scaling"
        raise InputError(f"{text} is a configuration of another verb; use truesource {verb} {text}")
    listed = f"configurations that come with truesource: {', '.join(known)}"
    similar = did_you_mean(path.stem, known)
    reason = "there is no such configuration"
    if path.is_dir():
        reason, inside = "this is a folder, not a configuration", sorted(path.glob("*.yaml"))
        similar = f"; did you mean {inside[0]}?" if len(inside) == 1 else ""
    raise InputError(f"{reason}{similar or ';'} {listed}", text, code="missing")
