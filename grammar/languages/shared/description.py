"""The settings and the source of a language, in words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic.fields import FieldInfo

from truesource.grammar.languages.shared.language import LanguageSettings
from truesource.grammar.support.records import plain_number
from truesource.grammar.support.settings import written

_AUTHORS = re.compile(r"(?P<authors>[^()]+) \((?P<year>\d{4})\)")


@dataclass(frozen=True)
class Parameter:
    """One setting of a language."""

    key: str
    value: str  #: as a reference has it; empty for none
    values: str  #: those it may have
    meaning: str


def parameters(settings: LanguageSettings) -> list[Parameter]:
    """The settings, one by one; those that have no meaning beside another are left out."""
    values = settings.model_dump()
    return [
        Parameter(key, "" if values[key] is None else written(values[key]), _values(field), field.description or "")
        for key, field in type(settings).model_fields.items()
        if key in values
    ]


def short_citation(citation: str) -> str:
    """Authors and year of a publication, such as ``Hewitt et al. (2020)``; else what stands before the first comma."""
    found = _AUTHORS.match(citation)
    if found is None:
        return citation.partition(",")[0]
    names = re.split(r", | and ", found["authors"])
    authors = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{authors} ({found['year']})"


def _values(field: FieldInfo) -> str:
    """The values that a setting may have, such as ``1 to 10``."""
    kinds = [kind for kind in get_args(field.annotation) if get_origin(kind) is Literal]  # of one that may be None
    kind = kinds[0] if kinds else field.annotation
    if get_origin(kind) is Literal:
        return ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return "numbers joined by +"
    if kind is bool:
        return "true, false"
    low = high = ""
    for limit in field.metadata:
        if isinstance(limit, Ge | Gt):
            low = f"above {plain_number(limit.gt)}" if isinstance(limit, Gt) else plain_number(limit.ge)
        elif isinstance(limit, Le | Lt):
            high = f"below {plain_number(limit.lt)}" if isinstance(limit, Lt) else plain_number(limit.le)
    return " to ".join(part for part in (low, high) if part)
