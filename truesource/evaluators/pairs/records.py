"""What the stage of `pairs` leaves in the folder of a run; keys that are not here are kept."""

from __future__ import annotations

from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.grammar.support.records import STRICT


@with_config(STRICT)
class PairsSummary(TypedDict):
    """``pairs/summary.json``."""

    notes: Any
    examples: Any
    pairs: Any
    oracle: Any


@with_config(STRICT)
class PairsOfModel(TypedDict):
    """``pairs/models/<model>.json``."""

    objective: str
    left_out: Any
    records: list[ScoreRecord]
