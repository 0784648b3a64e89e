"""Snapshots: models kept for good along a training run, to see what is learnt when.

They are not the checkpoints that an interrupted run resumes from: checkpoints also hold the optimiser, and are deleted
when the run is finished. A snapshot is a model folder like the finished one, under ``<model>/snapshots/step-000123``. A
custom model may give models of its training too, see `checkpoints_of`.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truesource.generator.abilities import offers, require
from truesource.generator.foreign_code import code_errors, file_of
from truesource.generator.language_model import LanguageModel
from truesource.grammar.support.atomic_files import atomic_path, write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import approximate
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.models import load_model, require_model
from truesource.lmtrain.references import ModelReference, model_reference
from truesource.lmtrain.training_record import FILE, TrainingRecord, file_digests, read_training

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


FOLDER = "snapshots"
MOST = 1_000_000  #: snapshots of a training
_FILES = ("config.json", "tokenizer.json")  #: in addition to the weights
_NAME = re.compile(r"step-(\d{6,})")


def schedule(config: TrainConfig, n_steps: int) -> frozenset[int]:
    """Return the steps after which a snapshot is kept: 0, ``n_steps`` and the steps of the settings.

    ``linear``: every ``snapshot_every`` steps. ``log``: the whole numbers nearest to 2 ** (k / m), m being
    ``snapshots_per_doubling`` and k = 0, 1, 2, ...

    Raises:
        InputError: there are more than `MOST` (code ``too-large``).
    """
    if config.snapshots == "none":
        return frozenset()
    doublings = n_steps.bit_length() * config.snapshots_per_doubling
    number = -(-n_steps // config.snapshot_every) if config.snapshots == "linear" else doublings
    if number > MOST:
        raise InputError(
            f"{n_steps:,} steps have about {approximate(number)} snapshots, expecting at most {MOST:,}; keep fewer"
            " (training.snapshot_every, training.snapshots_per_doubling)",
            code="too-large",
        )
    if config.snapshots == "linear":
        between = set(range(0, n_steps, config.snapshot_every))
    else:
        m = config.snapshots_per_doubling
        between = {round(2 ** (k / m)) for k in range(m * n_steps.bit_length() + 1)}
    return frozenset({0, n_steps} | {step for step in between if step < n_steps})


@dataclass(frozen=True)
class Progress:
    """The part of a training that a model has behind it."""

    name: str  #: of the model
    step: int
    epoch: float  #: passes over the train split
    tokens: int  #: that it was trained on


def write_snapshot(
    folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, progress: Progress
) -> None:
    """Write a snapshot below ``folder``, completely or not at all.

    Args:
        folder: of the run.
        model: its present state.
        tokenizer: that goes with it.
        progress: kept in ``training.json``.
    """
    from truesource.lmtrain.saving import save_model  # torch

    with atomic_path(folder / FOLDER / f"step-{progress.step:06d}") as target:
        save_model(target, model, tokenizer)
        named = replace(progress, name=f"{progress.name}@{progress.step}")
        write_json(target / FILE, {**asdict(named), "files": file_digests(target)})


def snapshots(folder: str | Path) -> list[tuple[int, Path]]:
    """Return the snapshots of a trained model in order: (step, model folder).

    Raises:
        InputError: the folder is not there, or the record of a snapshot is damaged or of another step.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("there is no such model folder", folder)
    result = []
    for path in (folder / FOLDER).glob("step-*"):
        name = _NAME.fullmatch(path.name)
        if name is None:
            continue
        step = int(name[1])
        recorded = read_training(path).step if (path / FILE).is_file() else None
        if recorded not in (None, step):
            raise InputError(f"this snapshot is of step {recorded} by its training.json; rename its folder", path)
        result.append((step, path))
    return sorted(result)


def checkpoints(folder: str | Path) -> list[tuple[int, Path]]:
    """Return the snapshots of a trained model in order, and last the model itself: (step, model folder), none missing.

    A folder without ``training.json`` is taken as laid out by hand: each model folder ``snapshots/step-000123`` in it
    is the snapshot of the step in its name, and the folder itself need not hold a model.

    Raises:
        InputError: the folder holds no finished model and no snapshots, or it was trained without snapshots, a snapshot
            lacks files, or a snapshot of its training is missing; the message names the step.
    """
    folder = Path(folder)
    by_step = dict(snapshots(folder))
    if not (folder / FILE).is_file():
        if not by_step:
            raise InputError(
                "there is no trained model here; train one, finish its training, or lay out checkpoints of your own as"
                f" {FOLDER}/step-000010, {FOLDER}/step-000020, ..., each with config.json, weights and tokenizer.json",
                folder,
            )
        return _whole(sorted(by_step.items()))
    record = read_training(folder)
    last, expected = _schedule_of(record, folder)
    if not expected:
        how = "train it with --set training.snapshots=log" if record.training else "an n-gram model has no steps"
        raise InputError(f"this model has no snapshots along its training: {how}", folder)
    absent = sorted({step for step in expected if step < last} - by_step.keys())
    if absent:
        more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
        raise InputError(f"the snapshot of step {absent[0]} is missing{more}; train the model again", folder / FOLDER)
    path_of_step = [(step, path) for step, path in by_step.items() if step < last] + [(last, folder)]
    return _whole(path_of_step, (*_FILES, FILE))


def _whole(made: list[tuple[int, Path]], files: tuple[str, ...] = _FILES) -> list[tuple[int, Path]]:
    """Check that each folder of ``made`` has the ``files`` and weights, and return them.

    Raises:
        InputError: a snapshot lacks a file.
    """
    for step, path in made:
        lacking = [name for name in files if not (path / name).is_file()]
        if not any(path.glob("*.safetensors")) and not any(path.glob("*.bin")):
            lacking.append("model.safetensors")
        if lacking:
            raise InputError(f"the snapshot of step {step} is unfinished, it lacks {', '.join(lacking)}", path)
    return made


def _schedule_of(record: TrainingRecord, folder: Path) -> tuple[int, frozenset[int]]:
    """Return the last step of a finished training, and the steps that its settings make snapshots of."""
    if record.training is None:
        return record.steps or 0, frozenset()
    if record.steps is None or record.planned_steps is None or record.steps > record.planned_steps:
        raise InputError("the record of the training has no steps; train the model again", folder)
    try:
        settings = TrainConfig(**record.training)
    except (ValueError, TypeError) as error:
        raise InputError("the record of the training is damaged; train the model again", folder) from error
    return record.steps, schedule(settings, record.planned_steps)


def drop_later(folder: Path, step: int) -> None:
    """Remove the snapshots of steps after ``step``, which will be taken again, and incomplete ones that a kill left.

    Snapshots are folders; files next to them are not ours, and remain.
    """
    for path in (folder / FOLDER).glob("*"):
        name = _NAME.fullmatch(path.name)
        if path.is_dir() and not path.is_symlink() and (name is None or int(name[1]) > step):
            shutil.rmtree(path)


def copy_all(source: Path, target: Path) -> None:
    """Copy the snapshots of one folder into another, as hard links if possible."""
    if (source / FOLDER).is_dir():
        shutil.copytree(source / FOLDER, target / FOLDER, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:  # a file system without links
        shutil.copy2(source, target)


class Checkpoint(NamedTuple):
    """A model at a step of its training."""

    step: int
    load: Callable[[], LanguageModel]


def checkpoints_of(
    reference: str | Path | ModelReference, needed_by: str, model: LanguageModel | None = None
) -> list[Checkpoint]:
    """Return the checkpoints of a model by rising step, the model itself last.

    Args:
        reference: to the model. A folder has snapshots, see `truesource.lmtrain.snapshots.checkpoints`; code gives a
            model with a method ``snapshots()``, which returns pairs of a step and a model.
        needed_by: name of the caller, for the message about a model without checkpoints.
        model: the model of the reference, if it is loaded already.

    Raises:
        InputError: no checkpoints exist (code ``missing-ability`` of a model without the method), or they are not pairs
            of different steps and models (``not-snapshots``).
    """
    named = model_reference(reference)
    if named.folder is not None:
        return [Checkpoint(step, partial(load_model, named.at(path))) for step, path in checkpoints(named.folder)]
    ready = require(load_model(named) if model is None else model, "snapshots", needed_by)
    source = file_of(ready)
    with code_errors(f"{ready.name}.snapshots", source):
        pairs = list(ready.snapshots())

    def refuse(what: str) -> InputError:
        return InputError(f"{ready.name}.snapshots {what}", source, code="not-snapshots")

    if not pairs:
        raise refuse("returned no snapshots")
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], int) for pair in pairs):
        raise refuse("has to return pairs of a step, a whole number, and a model")
    if len({step for step, _ in pairs}) < len(pairs):
        raise refuse("returned a step twice")
    return [
        Checkpoint(step, partial(require_model, snapshot, f"step {step} of {ready.name}", source))
        for step, snapshot in sorted(pairs, key=lambda pair: pair[0])
    ]


def has_checkpoints(reference: str | Path | ModelReference, model: LanguageModel) -> bool:
    """Return True if the model has checkpoints, for callers that can do without them."""
    folder = model_reference(reference).folder
    return offers(model, "snapshots") if folder is None else (folder / FOLDER).is_dir()
