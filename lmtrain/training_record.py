"""The records of a training in a model folder: ``training.json``, digests, times, and the partial folder.

Training leaves ``training.json`` in a model folder and in every snapshot, with digests of the files, so that a changed
byte is noticed when a file is read. How long it took is in ``times.jsonl``: all other files are the same at every
training. A model is trained in a partial folder next to its place, which a stopped training resumes from.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NotRequired

from pydantic import BaseModel, Field, with_config
from typing_extensions import TypedDict

from truesource.grammar.support.atomic_files import discard, write_text
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file, digest_json
from truesource.grammar.support.records import STRICT, Count, FileName, read_record, read_records
from truesource.lmtrain import architectures
from truesource.lmtrain.own.shared import MODEL_TYPE

FILE = "training.json"
WHAT = "the record of the training"
REMEDY = "train the model again"
TIMES = "times.jsonl"
SUFFIX = ".partial"
REQUEST = "request.json"  #: the request of the training, in the partial folder
OWN_NETWORK = f"modeling_{MODEL_TYPE.replace('-', '_')}"  #: the file of a custom model that `transformers` opens
_OF_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".npz")  #: endings of files of weights and counts
_WEIGHTS = ("config.json", "tokenizer.json", "*.safetensors", "*.bin")  #: files that another training may start from
#: mean loss in nats whose perplexity is a number
Loss = Annotated[float, Field(lt=math.log(sys.float_info.max))]
Seconds = Annotated[float, Field(ge=0.0)]
#: keys of ``training.json`` about the course and the results of a training, not its request
OUTCOMES = ("seed", "name", "final", "files", "versions", "steps", "step", "stopped_early")


class TrainingRecord(BaseModel):
    """The part of the record of any model folder that is read."""

    model_config = STRICT

    name: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    step: Count | None = None  #: of a snapshot
    steps: Count | None = None  #: of a finished model, like those below
    planned_steps: Count | None = None
    training: dict[str, object] | None = None
    corpus_lengths: str | None = None
    corpus_digest: str | None = None
    license: str | None = None  #: of the model, for its card
    language: str | None = None
    files: dict[FileName, str] = {}  #: SHA-256 of the files next to it, see `truesource.lmtrain.training_record`


@with_config(STRICT)
class MetricsRow(TypedDict):
    """A line of ``metrics.jsonl``; values of a monitor are kept under its names."""

    step: Count
    epoch: NotRequired[float | None]
    tokens: NotRequired[Count | None]
    loss: NotRequired[Loss | None]
    lr: NotRequired[float | None]
    dev_loss: NotRequired[Loss | None]
    dev_ppl: NotRequired[float | None]
    relative_ppl: NotRequired[float | None]
    kl: NotRequired[float | None]


class ModelSettings(BaseModel):
    """The settings of the model."""

    model_config = STRICT

    tokenizer: str


class FinishedRecord(TrainingRecord):
    """The record of a finished model that was trained here."""

    parameters: Count
    model: ModelSettings


def read_training(folder: Path) -> TrainingRecord:
    """Return the record of a model folder.

    Raises:
        InputError: it is missing or damaged.
    """
    return read_record(folder / FILE, TrainingRecord, what=WHAT, remedy=REMEDY)


def read_about(folder: Path) -> dict[str, str]:
    """Return the licence and language in the record of a model folder; empty without a record.

    Raises:
        InputError: the record is damaged.
    """
    record = read_training(folder) if (folder / FILE).is_file() else TrainingRecord()
    named = {"license": record.license, "language": record.language}
    return {key: value for key, value in named.items() if value is not None}


def read_finished(folder: Path) -> FinishedRecord:
    """Return the record of a finished model that was trained here.

    Raises:
        InputError: it is missing or damaged.
    """
    return read_record(folder / FILE, FinishedRecord, what=WHAT, remedy=REMEDY)


def model_name(folder: Path) -> str:
    """Return the name of a model in tables: from its record, or else of its folder.

    Raises:
        InputError: the record is damaged.
    """
    named = read_training(folder).name if (folder / FILE).is_file() else None
    return folder.name if named is None else named


@with_config(STRICT)
class TimesRow(TypedDict):
    """A line: the seconds of training until this step's line of ``metrics.jsonl``, stopped calls included."""

    step: Count
    seconds: Seconds


def write_times(folder: Path, rows: Iterable[TimesRow]) -> None:
    """Write the times of a training into its folder."""
    write_text(folder / TIMES, "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows))


def read_times(folder: Path, *, remedy: str = REMEDY) -> list[TimesRow]:
    """Return the times of a training; empty if the folder has none.

    Raises:
        InputError: the file is damaged.
    """
    path = folder / TIMES
    return [row for _, row in read_records(path, TimesRow, remedy=remedy)] if path.is_file() else []


def training_seconds(folder: Path) -> float | None:
    """Return the seconds that the training of a finished model took, in all its calls; None if not recorded.

    Raises:
        InputError: the times are damaged.
    """
    rows = read_times(folder)
    return rows[-1]["seconds"] if rows else None


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a model folder but the times: ``files`` of ``training.json``."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != TIMES)
    return {path.name: digest_file(path) for path in files}


def require_unchanged(folder: Path, names: Iterable[str]) -> None:
    """Refuse a file that is not the one that training wrote.

    Files that ``training.json`` does not list, and folders without one, are taken as they are.

    Args:
        folder: of the model.
        names: files directly in it.

    Raises:
        InputError: a digest differs, or ``training.json`` is damaged.
    """
    if not (folder / FILE).is_file():
        return
    recorded = read_training(folder).files
    for name in names:
        path = folder / name
        if name in recorded and path.is_file() and digest_file(path) != recorded[name]:
            raise InputError(
                f"this file is not the one that training wrote ({FILE} has its digest), it was damaged or edited;"
                f" train the model again, or delete {FILE} if you changed it on purpose",
                path,
            )


def require_weights(folder: Path) -> None:
    """Refuse weights that are not the ones that training wrote, whatever their files are called.

    Raises:
        InputError: as `require_unchanged`, or a file of weights that ``training.json`` lists is missing, so that
            others would be read in its place (code ``missing``).
    """
    if not (folder / FILE).is_file():
        return
    recorded = [name for name in read_training(folder).files if Path(name).suffix in _OF_WEIGHTS]
    for name in recorded:
        if not (folder / name).is_file():
            raise InputError(
                f"these weights, which training wrote ({FILE} has their digest), are missing, and the folder has others"
                f" in their place; train the model again, or delete {FILE} if you replaced them on purpose",
                folder / name,
                code="missing",
            )
    require_unchanged(folder, recorded)


def weights_digest(folder: Path) -> str:
    """Return the SHA-256, hexadecimal, of the files of a model folder that a training from its weights reads.

    Raises:
        InputError: there is no such folder (code ``missing``).
    """
    if not folder.is_dir():
        raise InputError("there is no such model folder to take weights from", folder, code="missing")
    return digest_json({path.name: digest_file(path) for pattern in _WEIGHTS for path in sorted(folder.glob(pattern))})


def place_of(out: Path) -> Path:
    """Return the folder that the model ``out`` is trained in."""
    return out.with_name(f"{out.name}{SUFFIX}")


def model_of(partial: Path) -> Path:
    """Return the model that is trained in a partial folder."""
    return partial.with_name(partial.name.removesuffix(SUFFIX))


def remove_used_up(out: Path) -> None:
    """Remove the partial folder of a finished model, which a kill has left; for the holder of the model's lock."""
    partial = place_of(out)
    try:
        request = read_record(partial / REQUEST, dict[str, object], remedy="start again")
        finished = read_record(out / FILE, dict[str, object], remedy="train it again")
    except InputError:  # one of the two is missing, or damaged
        return
    if all(finished.get(key) == value for key, value in request.items()):
        discard(partial, out)


@dataclass(frozen=True)
class Training:
    """The settings and the seed of a training."""

    settings: str  #: digest of the request without the seed
    seed: int


def training_of(folder: Path) -> Training | None:
    """Return the training of a model folder; None if its record or its seed is missing.

    Raises:
        InputError: the record is damaged.
    """
    if not (folder / FILE).is_file():
        return None
    record = read_training(folder).model_dump(mode="json")
    seed = record.get("seed")
    if not isinstance(seed, int):
        return None
    request = {key: value for key, value in record.items() if key not in OUTCOMES}
    if isinstance(request.get("model"), dict):
        request["model"] = {key: value for key, value in request["model"].items() if key != "name"}
    return Training(digest_json(request), seed)


def are_replicates(trainings: list[Training | None]) -> bool:
    """Return True if models were trained alike, each with a seed of its own."""
    recorded = [training for training in trainings if training is not None]
    settings, seeds = {training.settings for training in recorded}, {training.seed for training in recorded}
    return len(recorded) == len(trainings) == len(seeds) and len(settings) == 1


def code_travels(record: dict[str, Any]) -> bool:
    """Return True if the folder of a model holds the code of its network.

    Args:
        record: content of ``training.json``.
    """
    if "code_digest" in record["model"]:
        return f"{OWN_NETWORK}.py" in record.get("files", {})
    spec = find_spec(f"{architectures.__name__}.{record['model']['architecture']}")
    return spec is not None and spec.origin is not None
