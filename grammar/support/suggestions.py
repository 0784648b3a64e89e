"""What a person may have meant by a name that nothing has."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any, get_args, get_origin

from truesource.grammar.support.fields import fields_of


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean lengths?``, or nothing where no known name is similar."""
    near = get_close_matches(name.lower(), list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def keys_at(model: Any, where: Iterable[str | int]) -> tuple[str, ...]:
    """The keys of a place in settings.

    Args:
        model: class of the settings: a pydantic model or a dataclass.
        where: keys and numbers of list entries that lead from ``model`` to the place.

    Returns:
        The keys; none where the place does not hold settings of a known class.
    """
    kinds = [model]
    for part in where:
        kinds = [inner for kind in kinds for inner in _inside(kind, part)]
    return tuple(key for kind in kinds for key in fields_of(kind))


def members(annotation: Any) -> list[Any]:
    """The classes that a type may stand for: of a union, each; of ``Annotated``, what is annotated."""
    if get_origin(annotation) is Annotated:
        return members(get_args(annotation)[0])
    if isinstance(annotation, type) or get_origin(annotation) in (list, tuple, dict):
        return [annotation]
    return [each for part in get_args(annotation) for each in members(part)]


def _inside(kind: Any, part: str | int) -> list[Any]:
    """The types at a key or number of a type."""
    if get_origin(kind) in (list, tuple, dict):
        return members(get_args(kind)[0 if isinstance(part, int) else -1])
    field = fields_of(kind).get(str(part))
    return [] if field is None else members(field.annotation)
