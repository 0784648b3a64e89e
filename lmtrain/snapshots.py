"""Snapshots: models kept for good along a training run, to see what is learnt when.

They are not the checkpoints that an interrupted run goes on from: those hold the optimiser too, and go when the run
is finished. A snapshot is a model folder like the finished one, under ``<model>/snapshots/step-000123``.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grammar.errors import InputError
from grammar.files import atomic_path, write_json
from lmtrain.config import TrainConfig
from lmtrain.saving import save_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

FOLDER = "snapshots"
_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")  #: besides the weights
_NAME = re.compile(r"step-(\d{6,})")


def schedule(config: TrainConfig, n_steps: int) -> frozenset[int]:
    """Steps after which a snapshot is kept: 0, ``n_steps`` and what the settings say.

    ``linear``: every ``snapshot_every`` steps. ``log``: the whole numbers nearest to 2 ** (k / m), m being
    ``snapshots_per_doubling`` and k = 0, 1, 2, ...
    """
    if config.snapshots == "none":
        return frozenset()
    if config.snapshots == "linear":
        between = set(range(0, n_steps, config.snapshot_every))
    else:
        m = config.snapshots_per_doubling
        between = {round(2 ** (k / m)) for k in range(m * n_steps.bit_length() + 1)}
    return frozenset({0, n_steps} | {step for step in between if step < n_steps})


def write_snapshot(
    folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, progress: dict[str, Any]
) -> None:
    """Write one below ``folder``, whole or not at all.

    Args:
        folder: of the run.
        model: as it is now.
        tokenizer: that goes with it.
        progress: ``name`` of the model, ``step``, ``epoch`` and ``tokens``; kept in ``training.json``.
    """
    step = progress["step"]
    with atomic_path(folder / FOLDER / f"step-{step:06d}") as made:
        save_model(made, model, tokenizer)
        write_json(made / "training.json", {**progress, "name": f"{progress['name']}@{step}"})


def snapshots(folder: str | Path) -> list[tuple[int, Path]]:
    """The snapshots of a trained model in order: (step, model folder).

    Raises:
        InputError: the folder is not there, or a snapshot is damaged.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("there is no such model folder", folder)
    found = []
    for path in (folder / FOLDER).glob("step-*"):
        if _NAME.fullmatch(path.name) is None:
            continue
        try:
            step = json.loads((path / "training.json").read_text(encoding="utf-8"))["step"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError("this snapshot is damaged; train the model again", path) from error
        found.append((int(step), path))
    return sorted(found)


def checkpoints(folder: str | Path) -> list[tuple[int, Path]]:
    """The snapshots of a trained model in order, and last the model itself: (step, model folder), none left out.

    Raises:
        InputError: the folder holds no finished model or it was trained without snapshots, a snapshot lacks files, or
            one that its training has made is missing; the message names the step.
    """
    folder = Path(folder)
    found = dict(snapshots(folder))
    try:
        training = json.loads((folder / "training.json").read_text(encoding="utf-8"))
        last, settings = int(training["steps"]), training["training"]
        expected = schedule(TrainConfig(**settings), int(training["planned_steps"])) if settings else frozenset()
    except FileNotFoundError:
        raise InputError("there is no trained model here; train one, or finish its training", folder) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError("the record of the training is damaged; train the model again", folder) from error
    if not expected:
        how = "an n-gram model has no steps" if settings is None else "train it with --set training.snapshots=log"
        raise InputError(f"this model has no snapshots along its training: {how}", folder)
    absent = sorted({step for step in expected if step < last} - found.keys())
    if absent:
        more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
        raise InputError(f"the snapshot of step {absent[0]} is missing{more}; train the model again", folder / FOLDER)
    made = [(step, path) for step, path in found.items() if step < last] + [(last, folder)]
    for step, path in made:
        lacking = [name for name in _FILES if not (path / name).is_file()]
        if not any(path.glob("*.safetensors")):
            lacking.append("model.safetensors")
        if lacking:
            raise InputError(f"the snapshot of step {step} is unfinished, it lacks {', '.join(lacking)}", path)
    return made


def drop_later(folder: Path, step: int) -> None:
    """Remove the snapshots of steps after ``step``, which will be taken again, and what a kill left half written.

    These are folders; files beside them are none of ours, and remain.
    """
    for path in (folder / FOLDER).glob("*"):
        name = _NAME.fullmatch(path.name)
        if path.is_dir() and not path.is_symlink() and (name is None or int(name[1]) > step):
            shutil.rmtree(path)


def copy_all(source: Path, target: Path) -> None:
    """Take the snapshots of one folder over into another, without doubling them on the disk where that is possible."""
    if (source / FOLDER).is_dir():
        shutil.copytree(source / FOLDER, target / FOLDER, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:  # a file system without links
        shutil.copy2(source, target)
