"""What the stage of `tendencies` leaves in the folder of a run; keys that are not here are kept."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.grammar.support.records import STRICT, Count


@with_config(STRICT)
class TendenciesRecord(TypedDict):
    """``tendencies/tendencies.json``."""

    against: Literal["truth", "sample"]
    words: Count
    collapsed: Any
    samples: list[dict[str, Any]]
    tokens: NotRequired[Count]  #: in how many different words are counted
    draws_needed: NotRequired[Count | None]  #: of each test, for stars to be possible
    notes: list[str]
    records: list[ScoreRecord]
