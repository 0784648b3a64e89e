"""JSON files of model folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grammar.errors import InputError


def read_object(path: Path, what: str) -> dict[str, Any]:
    """A file that holds one JSON object.

    Args:
        path: the file.
        what: names it in messages.

    Raises:
        InputError: it cannot be read, is no UTF-8 or no JSON, is nested too deeply, or holds something else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{what} is missing", path) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{what} cannot be read: {error}", path) from error
    except RecursionError as error:
        raise InputError(f"{what} is nested too deeply", path) from error
    if not isinstance(value, dict):
        raise InputError(f"{what} is not a JSON object", path)
    return value
