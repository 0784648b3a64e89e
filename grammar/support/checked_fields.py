"""Checking a dataclass against the annotations of its fields, in which types and bounds are said once."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import explain


def check_fields(settings: Any, what: str) -> None:
    """Refuse a dataclass with a value that its annotations, with the bounds of `pydantic.Field`, do not allow.

    Args:
        settings: a dataclass.
        what: they are of, for the message.

    Raises:
        InputError: a value is of another type, or out of its range (code ``bad-setting``).
    """
    kind: Any = type(settings)
    for name, adapter in _adapters(kind).items():
        try:
            adapter.validate_python(getattr(settings, name), strict=True)
        except ValidationError as error:
            raise InputError(f"{what}: {explain(error, name)}", code="bad-setting") from error


@cache
def _adapters(kind: Any) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: TypeAdapter(hints[field.name]) for field in fields(kind)}
