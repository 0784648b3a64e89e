"""Functions for truesource and for a model folder that is opened without it; this file travels in such folders.

It imports the standard library alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from inspect import Parameter
from typing import Any

MODEL_TYPE = "truesource-own"  #: ``model_type`` in ``config.json``
OURS = ("objective", "max_positions")  #: settings of every model that the code may take too


def changed_settings(parameters: Mapping[str, Parameter], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that differ from the defaults of the code, so that those stay the objects that they are.

    Args:
        parameters: of the code, by name.
        settings: JSON values, by name.
    """
    return {
        name: value
        for name, value in settings.items()
        if name not in parameters or not _is_default(value, parameters[name].default)
    }


def is_plain(default: Any) -> bool:
    """True if the default of a parameter is a JSON value."""
    if default is Parameter.empty:
        return False
    try:
        json.dumps(default, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def plain(default: Any) -> Any:
    """A default as JSON gives it back: a tuple as a list."""
    return json.loads(json.dumps(default))


def _is_default(value: Any, default: Any) -> bool:
    return is_plain(default) and type(plain(default)) is type(value) and bool(plain(default) == value)
