"""What the stage of `naturalness` leaves in the folder of a run; keys that are not here are kept."""

from __future__ import annotations

from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.grammar.records import STRICT


@with_config(STRICT)
class NaturalnessRecord(TypedDict):
    """``naturalness/naturalness.json``."""

    reference: Any
    sentences: Any
    records: list[ScoreRecord]
