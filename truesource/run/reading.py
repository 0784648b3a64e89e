"""Reading YAML settings with overrides, with messages about errors."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder
from truesource.grammar.support.records import parse_yaml, read_yaml
from truesource.grammar.support.settings import did_you_mean

SWEEP_KEYS = frozenset({"axes", "base"})  #: keys that only a sweep has
_SIGNS = re.compile(r"[-+*/|_#&!%@?:>.,=^$\\]{1,3}")  #: values of signs, which are text even if YAML reads structure
_TITLE = re.compile(r'^title: "?(?:truesource(?: demo)?: )?(?P<title>[^"\n]+)"?$', re.MULTILINE)


def read_settings(path: Path, overrides: list[str] | None = None) -> dict[str, Any]:
    """Read keys and values of a YAML file with overrides, without checking them.

    Raises:
        InputError: the file cannot be read, or is not a mapping; an override has another form.
    """
    values = read_yaml(path, what="the configuration", remedy="correct it, or use another file")
    if not isinstance(values, dict):
        raise InputError("the configuration must be a mapping and have the key name", path)
    for text in overrides or []:
        override(values, text)
    return {str(key): value for key, value in values.items()}


def parse_value(written: str, text: str) -> Any:
    """Return the value of an override, read as YAML; a value of only signs, such as ``-``, is text.

    Raises:
        InputError: it is not YAML.
    """
    if _SIGNS.fullmatch(text):
        return text
    return parse_yaml(text, what=f"the value of the override {written!r}", remedy="close brackets and quotes")


def override(values: dict[str, object], written: str) -> None:
    """Change one of the values as in ``key.subkey=value``; entries of lists are numbered from 0.

    Raises:
        InputError: it has another form, its value is not YAML, a parent key has no keys, or a list has no such
            entry.
    """
    key, separator, text = written.partition("=")
    *parents, last = key.split(".")
    if not separator or not all([*parents, last]):
        raise InputError(f"--set needs key.subkey=value, got {written!r}")
    place: Any = values
    for depth, part in enumerate(parents):
        index = _index(place, part, parents[:depth], key)
        if isinstance(place, dict) and (place.get(part) is None or place[part] is True):  # true: all defaults
            place[part] = {}
        place = place[index]
    place[_index(place, last, parents, key)] = parse_value(written, text)


def _index(place: Any, part: str, parents: list[str], key: str) -> str | int:
    """Return a part of a key as index of the mapping or list of its parents."""
    if isinstance(place, dict):
        return part
    name = ".".join(parents)
    if not isinstance(place, list):
        raise InputError(f"{key} cannot be set, because {name} is a single value; set {name} itself")
    if not part.isdecimal():
        raise InputError(
            f"{name} is a list, so {key} cannot be set; name an entry by its number, such as {name}.0, or set"
            f" {name}=[...]"
        )
    if int(part) >= len(place):
        there = f"its entries are {name}.0 to {name}.{len(place) - 1}" if place else "it is empty"
        raise InputError(f"{key} cannot be set, because {name} has no entry {part}; {there}")
    return int(part)


@cache
def packaged() -> dict[str, Path]:
    """Return all packaged configurations by name, in alphabetical order."""
    return {path.stem: path for path in sorted(data_folder().glob("*.yaml"))}


def purpose(name: str) -> str:
    """Return the title of a configuration."""
    match = _TITLE.search(packaged()[name].read_text(encoding="utf-8"))
    assert match is not None  # a test checks all of them
    return match["title"]


def is_sweep(path: Path) -> bool:
    """Return True if a configuration describes a sweep (`truesource.studies.scaling`), not one run.

    Raises:
        InputError: see `read_settings`.
    """
    return not SWEEP_KEYS.isdisjoint(read_settings(path))


def find_config(text: str) -> tuple[Path, Path]:
    """Find a configuration by path or name; a file of this name takes precedence.

    Args:
        text: a path, or a name such as ``demo``.

    Returns:
        The file, and the folder that its relative paths start from: its folder, or for names the working folder.

    Raises:
        InputError: there is neither such a file nor such a name.
    """
    path = Path(text)
    if path.is_file():
        return path, path.resolve().parent
    names = list(packaged())
    if text in names:
        return packaged()[text], Path.cwd()
    listed = f"configurations that come with truesource: {', '.join(names)}"
    similar = did_you_mean(path.stem, names)
    reason = "there is no such configuration"
    if path.is_dir():
        reason, inside = "this is a folder, not a configuration", sorted(path.glob("*.yaml"))
        similar = f"; did you mean {inside[0]}?" if len(inside) == 1 else ""
    raise InputError(f"{reason}{similar or ';'} {listed}", text, code="missing")
