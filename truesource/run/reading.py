"""Reading YAML settings with overrides, and saying what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import parse_yaml, read_yaml


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
    """The value of an override, read as YAML.

    Raises:
        InputError: it is not YAML.
    """
    return parse_yaml(text, what=f"the value of the override {written!r}", remedy="close brackets and quotes")


def override(values: dict[str, Any], written: str) -> None:
    """Change one of the values as ``key.subkey=value`` says.

    Raises:
        InputError: it is not written so, its value is not YAML, or a key on the way holds no keys.
    """
    key, separator, text = written.partition("=")
    *parents, last = key.split(".")
    if not separator or not all([*parents, last]):
        raise InputError(f"write --set as key.subkey=value, not as {written!r}")
    for parent in parents:
        if values.get(parent) is None:
            values[parent] = {}
        inner = values[parent]
        if isinstance(inner, list):
            raise InputError(f"{parent} is a list, so {key} cannot be set; set the whole list, such as models=[...]")
        if not isinstance(inner, dict):
            raise InputError(f"{key} cannot be set, because {parent} is a single value; set {parent} itself")
        values = inner
    values[last] = parse_value(written, text)
