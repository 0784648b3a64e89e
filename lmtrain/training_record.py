"""``training.json``, the record that training leaves in a model folder and in every snapshot, read again."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import BaseModel, Field, with_config
from typing_extensions import TypedDict

from truesource.grammar.support.records import STRICT, Count, FileName, read_record

FILE = "training.json"
WHAT = "the record of the training"
REMEDY = "train the model again"


class TrainingRecord(BaseModel):
    """What is read of the record of any model folder."""

    model_config = STRICT

    name: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    step: Count | None = None  #: of a snapshot
    steps: Count | None = None  #: of a finished model, like those below
    planned_steps: Count | None = None
    training: dict[str, Any] | None = None
    corpus_lengths: str | None = None
    corpus_digest: str | None = None
    license: str | None = None  #: of the model, for its card
    language: str | None = None
    files: dict[FileName, str] = {}  #: SHA-256 of the files beside it, see `truesource.lmtrain.integrity`


#: mean loss in nats whose perplexity is a number
Loss = Annotated[float, Field(lt=math.log(sys.float_info.max))]


@with_config(STRICT)
class MetricsRow(TypedDict):
    """A line of ``metrics.jsonl``; what a monitor found is kept under its names."""

    step: Count
    epoch: NotRequired[float | None]
    tokens: NotRequired[Count | None]
    loss: NotRequired[Loss | None]
    lr: NotRequired[float | None]
    dev_loss: NotRequired[Loss | None]
    dev_ppl: NotRequired[float | None]
    relative_ppl: NotRequired[float | None]
    seconds: NotRequired[float]  # of earlier versions, see `truesource.lmtrain.times`


class ModelSettings(BaseModel):
    """The settings of the model."""

    model_config = STRICT

    tokenizer: str


class FinishedRecord(TrainingRecord):
    """The record of a finished model that was trained here."""

    parameters: Count
    model: ModelSettings


def read_training(folder: Path) -> TrainingRecord:
    """The record of a model folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    return read_record(folder / FILE, TrainingRecord, what=WHAT, remedy=REMEDY)


def read_about(folder: Path) -> dict[str, str]:
    """Licence and language that the record of a model folder names; nothing where there is no record.

    Raises:
        InputError: the record is damaged.
    """
    known = read_training(folder) if (folder / FILE).is_file() else TrainingRecord()
    named = {"license": known.license, "language": known.language}
    return {key: value for key, value in named.items() if value is not None}


def read_finished(folder: Path) -> FinishedRecord:
    """The record of a finished model that was trained here.

    Raises:
        InputError: there is none, or it is damaged.
    """
    return read_record(folder / FILE, FinishedRecord, what=WHAT, remedy=REMEDY)


def model_name(folder: Path) -> str:
    """What a model is called in tables: as its record says, or as its folder where that says nothing.

    Raises:
        InputError: the record is damaged.
    """
    named = read_training(folder).name if (folder / FILE).is_file() else None
    return folder.name if named is None else named
