"""Reading YAML settings with overrides, and saying what is wrong with them."""

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
_SIGNS = re.compile(r"[-+*/|_#&!%@?:>.,=^$\\]{1,3}")  #: values that are text, though YAML reads some as structure
_TITLE = re.compile(r'^title: "?(?:truesource(?: demo)?: )?(?P<title>[^"\n]+)"?$', re.MULTILINE)


def read_settings(path: Path, overrides: list[str] | None = None) -> dict[str, Any]:
    """The keys and values of a YAML file, some of them overridden; nothing of them is checked.

    Raises:
        InputError: the file cannot be read, or is no mapping; an override is not written like one.
    """
    values = read_yaml(path, what="the configuration", remedy="correct it, or name another")
    if not isinstance(values, dict):
        raise InputError("the configuration must be a mapping and have the key name", path)
    for text in overrides or []:
        override(values, text)
    return {str(key): value for key, value in values.items()}


def parse_value(written: str, text: str) -> Any:
    """Return the value of an override, read as YAML; a value of signs alone, such as ``-``, is text.

    Raises:
        InputError: it is not YAML.
    """
    if _SIGNS.fullmatch(text):
        return text
    return parse_yaml(text, what=f"the value of the override {written!r}", remedy="close brackets and quotes")


def override(values: dict[str, Any], written: str) -> None:
    """Change one of the values as ``key.subkey=value`` says; an entry of a list is its number, from 0 on.

    Raises:
        InputError: it is not written so, its value is not YAML, a key on the way holds no keys, or a list has no such
            entry.
    """
    key, separator, text = written.partition("=")
    *parents, last = key.split(".")
    if not separator or not all([*parents, last]):
        raise InputError(f"write --set as key.subkey=value, not as {written!r}")
    place: Any = values
    for depth, part in enumerate(parents):
        index = _index(place, part, parents[:depth], key)
        if isinstance(place, dict) and (place.get(part) is None or place[part] is True):  # true: all defaults
            place[part] = {}
        place = place[index]
    place[_index(place, last, parents, key)] = parse_value(written, text)


def _index(place: Any, part: str, parents: list[str], key: str) -> str | int:
    """A part of a key, as it indexes the mapping or list that its parents hold."""
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
    """All configurations by name, in alphabetical order."""
    return {path.stem: path for path in sorted(data_folder().glob("*.yaml"))}


def purpose(name: str) -> str:
    """The title of a configuration."""
    found = _TITLE.search(packaged()[name].read_text(encoding="utf-8"))
    assert found is not None  # a test reads them all
    return found["title"]


def is_sweep(path: Path) -> bool:
    """Return True if a configuration describes a sweep (`truesource.studies.scaling`), not one run.

    Raises:
        InputError: as `read_settings`.
    """
    return not SWEEP_KEYS.isdisjoint(read_settings(path))


def find_config(text: str) -> tuple[Path, Path]:
    """A configuration by its path or name; a file of that name comes first.

    Args:
        text: a path, or a name such as ``demo``.

    Returns:
        The file, and the folder that its relative paths start from: its own, or for names the working folder.

    Raises:
        InputError: there is neither a file nor a name like that.
    """
    path = Path(text)
    if path.is_file():
        return path, path.resolve().parent
    known = list(packaged())
    if text in known:
        return packaged()[text], Path.cwd()
    listed = f"configurations that come with truesource: {', '.join(known)}"
    similar = did_you_mean(path.stem, known)
    reason = "there is no such configuration"
    if path.is_dir():
        reason, inside = "this is a folder, not a configuration", sorted(path.glob("*.yaml"))
        similar = f"; did you mean {inside[0]}?" if len(inside) == 1 else ""
    raise InputError(f"{reason}{similar or ';'} {listed}", text, code="missing")
