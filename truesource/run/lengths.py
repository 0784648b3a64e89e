"""The length condition of a configuration and of a call: none, unless requested or recorded."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from truesource.grammar.conditioning import LengthRange

LENGTHS = r"^\s*([Nn]one|\d+\s*\.\.\s*\d+)\s*$"  #: written form of length ranges


def _length_range(value: Any) -> Any:
    if value is None or isinstance(value, LengthRange):
        return value
    return LengthRange.parse(str(value))


#: written ``6..25`` (inclusive), or none
Lengths = Annotated[
    LengthRange | None,
    BeforeValidator(_length_range),
    PlainSerializer(lambda value: None if value is None else str(value)),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": LENGTHS}, {"type": "null"}]}),
]
