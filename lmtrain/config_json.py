"""What ``config.json`` of a model may say, checked before a library acts on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_bytes

LARGEST = 2**40  #: no size of a network is larger
LIMIT = 2**26  #: bytes of the file
LABELS = 100_000  #: the library makes a dictionary of so many entries


def read_config_json(path: Path) -> dict[str, Any]:
    """Content of ``config.json``.

    Raises:
        InputError: it is no JSON object, ``model_type`` or ``architectures`` are not what the library expects, or a
            number in it is impossible.
    """
    try:
        config = json.loads(read_bytes(path, limit=LIMIT, line_limit=None).decode("utf-8"))  # may hold Infinity
    except (ValueError, RecursionError) as error:
        reason = error.reason if isinstance(error, InputError) else str(error)
        raise InputError(f"the configuration of the model cannot be read: {reason}", path) from error
    if not isinstance(config, dict):
        raise InputError("the configuration of the model is not a JSON object", path)
    kind, classes = config.get("model_type"), config.get("architectures")
    if kind is not None and not isinstance(kind, str):
        raise InputError(f"model_type must be a string, not {_short(kind)}", path)
    if classes is not None and not (isinstance(classes, list) and all(isinstance(name, str) for name in classes)):
        raise InputError(f"architectures must be a list of strings, not {_short(classes)}", path)
    for key, value in _integers(config):
        if abs(value) > LARGEST or (key == "num_labels" and value > LABELS):
            raise InputError(f"{key} is {_short(value)}, which is impossible", path)
    return config


def _integers(value: Any, key: str = "") -> Iterator[tuple[str, int]]:
    """All integers within a JSON value, each with the key that it stands under."""
    stack = [(key, value)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, dict):
            stack += value.items()
        elif isinstance(value, list):
            stack += [(key, inner) for inner in value]
        elif isinstance(value, int):
            yield key, value


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
