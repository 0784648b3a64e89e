"""Records of evaluators under the name that the configuration gives to a model."""

from __future__ import annotations

from typing import Any


def under_name(record: Any, own: str, name: str) -> Any:
    """The same record with ``name`` for a model wherever its ``own`` name stands under the key ``model``.

    A model that is loaded has a name of its own; in a run it is what the configuration calls it.
    """
    if isinstance(record, dict):
        return {
            key: name if key == "model" and value == own else under_name(value, own, name)
            for key, value in record.items()
        }
    return [under_name(each, own, name) for each in record] if isinstance(record, list | tuple) else record
