"""How long training took, in ``times.jsonl`` of a model folder: all its other files are the same at every training."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, with_config
from typing_extensions import TypedDict

from truesource.grammar.support.files import write_text
from truesource.grammar.support.records import STRICT, Count, read_record, read_records
from truesource.lmtrain.training_record import FILE, REMEDY, WHAT

TIMES = "times.jsonl"
Seconds = Annotated[float, Field(ge=0.0)]


@with_config(STRICT)
class TimesRow(TypedDict):
    """A line: the seconds of training until the line of ``metrics.jsonl`` of this step, those of stopped calls too."""

    step: Count
    seconds: Seconds


class _FinalMetrics(BaseModel):
    model_config = STRICT

    seconds: Seconds | None = None


class _EarlierRecord(BaseModel):
    """``training.json``, in which earlier versions wrote the time."""

    model_config = STRICT

    final: _FinalMetrics | None = None


def write_times(folder: Path, rows: Iterable[TimesRow]) -> None:
    """Write the times of a training into its folder."""
    write_text(folder / TIMES, "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))


def read_times(folder: Path, *, remedy: str = REMEDY) -> list[TimesRow]:
    """The times of a training; empty where the folder has none.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / TIMES
    return [row for _, row in read_records(path, TimesRow, remedy=remedy)] if path.is_file() else []


def training_seconds(folder: Path) -> float | None:
    """How long the training of a finished model took, in all calls if it was stopped; None where nothing says so.

    Raises:
        InputError: the times, or the record of the training, are damaged.
    """
    if rows := read_times(folder):
        return rows[-1]["seconds"]
    if not (folder / FILE).is_file():
        return None
    final = read_record(folder / FILE, _EarlierRecord, what=WHAT, remedy=REMEDY).final
    return None if final is None else final.seconds
