"""Reading YAML settings with overrides, and saying what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from grammar.errors import InputError


def explain(error: ValidationError, section: str = "") -> str:
    """The first mistake that pydantic found as ``key: what is wrong``, and how many more there are.

    Args:
        error: what pydantic raised.
        section: the key that everything in it stands under.
    """
    first, more = error.errors()[0], error.error_count() - 1
    where = ".".join(str(part) for part in ((section,) if section else ()) + first["loc"])
    what = "unknown key" if first["type"] in ("extra_forbidden", "unexpected_keyword_argument") else first["msg"]
    rest = f" (and {more} more)" if more else ""
    return f"{where + ': ' if where else ''}{what.removeprefix('Value error, ')}{rest}"


def read_settings(path: Path, overrides: list[str] | None = None) -> dict[str, Any]:
    """The keys and values of a YAML file, some of them overridden; nothing of them is checked.

    Raises:
        InputError: the file cannot be read, or is no mapping; an override is not written like one.
    """
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the configuration: {error.strerror}", path) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "it is not UTF-8 text"
        raise InputError(f"the configuration is not YAML: {reason}", path, mark.line + 1 if mark else None) from error
    if not isinstance(values, dict):
        raise InputError("the configuration must be a mapping with the key name", path)
    for override in overrides or []:
        _override(values, override)
    return {str(key): value for key, value in values.items()}


def parse_value(override: str, text: str) -> Any:
    """The value of an override, read as YAML.

    Raises:
        InputError: it is not YAML.
    """
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"the value of the override {override!r} is not YAML; close brackets and quotes") from error


def _override(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    *parents, last = key.split(".")
    if not separator or not all([*parents, last]):
        raise InputError(f"an override is written key.subkey=value, got {override!r}")
    for parent in parents:
        if values.get(parent) is None:
            values[parent] = {}
        inner = values[parent]
        if isinstance(inner, list):
            raise InputError(f"{parent} is a list, so {key} cannot be set; write the whole list, such as models=[...]")
        if not isinstance(inner, dict):
            raise InputError(f"{key} cannot be set: {parent} is a plain value")
        values = inner
    values[last] = parse_value(override, text)
