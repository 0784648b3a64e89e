"""``training.json``, the record that training leaves in a model folder and in every snapshot, read again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grammar.errors import InputError
from lmtrain.json_files import read_object

FILE = "training.json"
Count = Annotated[int, Field(ge=0, lt=2**63)]


class TrainingRecord(BaseModel):
    """What is read of the record; its other entries are kept as they are."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    name: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    step: Count | None = None  #: of a snapshot
    steps: Count | None = None  #: of a finished model, like those below
    planned_steps: Count | None = None
    training: dict[str, Any] | None = None
    corpus_lengths: str | None = None


def read_training(folder: Path) -> TrainingRecord:
    """The record of a model folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = folder / FILE
    try:
        return TrainingRecord.model_validate(read_object(path, "the record of the training"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(
            f"the record of the training is damaged: {where}: {first['msg']}; train the model again", path
        ) from error


def model_name(folder: Path) -> str:
    """What a model is called in tables: as its record says, or as its folder where that says nothing.

    Raises:
        InputError: the record is damaged.
    """
    named = read_training(folder).name if (folder / FILE).is_file() else None
    return folder.name if named is None else named
