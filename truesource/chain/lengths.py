"""A range of sentence lengths in a configuration."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from truesource.grammar.conditioning import LengthRange


def _length_range(value: Any) -> Any:
    if value is None or isinstance(value, LengthRange):
        return value
    return LengthRange.parse(str(value))


#: written ``6..25`` (inclusive), or none
Lengths = Annotated[
    LengthRange | None,
    BeforeValidator(_length_range),
    PlainSerializer(lambda value: None if value is None else str(value)),
]
