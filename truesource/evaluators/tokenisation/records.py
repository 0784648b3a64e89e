"""What the stage of `tokenisation` leaves in the folder of a run; keys that are not here are kept."""

from __future__ import annotations

from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.grammar.support.records import STRICT


@with_config(STRICT)
class TokenisationRecord(TypedDict):
    """``tokenisation/<model>.json``."""

    model: str
    marginal: str
    bound: Any
    documents: Any
    left_out: Any
    records: list[ScoreRecord]
    gaps: Any
