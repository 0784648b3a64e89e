"""What the stage of `dynamics` leaves in the folder of a run; keys that are not here are kept."""

from __future__ import annotations

from typing import Any, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.support.records import STRICT, Count


@with_config(STRICT)
class DynamicsRecord(TypedDict):
    """``dynamics/<model>.json``."""

    model: str
    objective: str
    steps: list[Count]
    threshold: float
    contexts: Any
    frame: Any
    tags: Any
    tokens: Any
    excluded: Any
    signature: str
    curves: Any
    findings: Any
    measure: NotRequired[str]
    only: NotRequired[list[str]]
