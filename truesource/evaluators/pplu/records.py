"""What the stage of `pplu` leaves in the folder of a run; keys that are not here are kept."""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.grammar.support.records import STRICT


@with_config(STRICT)
class PpluRecord(TypedDict):
    """``pplu/<model>.json``."""

    model: str
    objective: str
    unigram: NotRequired[Literal["oracle", "train", "test", "model"]]  #: source of the word frequencies
    records: list[ScoreRecord]
