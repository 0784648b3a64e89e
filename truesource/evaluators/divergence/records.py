"""What the stage of `divergence` leaves in the folder of a run; keys that are not here are kept."""

from __future__ import annotations

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.grammar.support.records import STRICT, Count


@with_config(STRICT)
class DivergenceRecord(TypedDict):
    """``divergence/<model>.json``."""

    model: str
    objective: str
    contexts: Count
    excluded: Count
    records: list[ScoreRecord]
