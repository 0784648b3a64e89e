"""What the stage of `tendencies` leaves in the folder of a run; keys that are not here are kept."""

from __future__ import annotations

from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.grammar.records import STRICT


@with_config(STRICT)
class TendenciesRecord(TypedDict):
    """``tendencies/tendencies.json``."""

    against: Any
    words: Any
    collapsed: Any
    samples: list[dict[str, Any]] | dict[str, Any]
    notes: Any
    records: list[ScoreRecord]
