"""What the stages of `treebank_baseline` leave in the folder of a run; keys that are not here are kept."""

from __future__ import annotations

from typing import NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.grammar.support.records import STRICT, Count, InnerPath, Positive

REAL, EQUAL, SAMPLED = "treebank", "sampled-equal", "sampled"  #: names of models, by what they were trained on


@with_config(STRICT)
class Trained(TypedDict):
    """How a model was trained once more."""

    sentences: Positive
    words: Positive
    steps: Count
    epochs: float | None
    scored_step: Count  #: of the state that is scored
    folder: InnerPath  #: of that state


@with_config(STRICT)
class TextCounts(TypedDict):
    """How many sentences of a text can be made by whom."""

    given: Positive
    impossible: dict[str, Count]
    common: Count
    lacking: NotRequired[Count]  #: possible for the grammar although it lacks a word


@with_config(STRICT)
class BaselineScore(ScoreRecord):
    """One number."""

    model: str
    text: str
    sentences: str
    words: str
    against: NotRequired[str]


@with_config(STRICT)
class BaselineRecord(TypedDict):
    """``treebank_baseline/<model>.json``."""

    model: str
    objective: str
    trained: dict[str, Trained]
    texts: dict[str, TextCounts]
    records: list[BaselineScore]
