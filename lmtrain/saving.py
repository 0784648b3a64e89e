"""Writing a model folder or a checkpoint, and reading a checkpoint.

A disk that cannot be written to is an `OSError`, whichever library writes. A run resumes only from a complete
checkpoint, or it would end with other weights.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from pydantic import BaseModel
from safetensors import SafetensorError

from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, Count, read_record
from truesource.lmtrain.folders import library_errors, no_bars
from truesource.lmtrain.model_code import auto_map, write_code

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


STATE = "trainer_state.json"  #: written last
REMEDY = "delete this checkpoint, and the run resumes from an earlier one"


def save_model(folder: Path, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Save weights, configuration and tokeniser for ``from_pretrained``, and the code of a network of ours.

    All files get the rights of new files.

    Raises:
        OSError: they cannot be written.
    """
    with no_bars(), disk_errors():
        with _auto_map(model):
            model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    write_code(folder, model)
    follow_umask(folder)


@contextmanager
def _auto_map(model: PreTrainedModel) -> Iterator[None]:
    """Let the configuration name, inside the block, the code of the folder that is written."""
    classes = auto_map(model)
    if classes is None:
        yield
        return
    model.config.auto_map = classes
    try:
        yield
    finally:
        del model.config.auto_map  # other folders that the model is saved to have no code


def follow_umask(folder: Path) -> None:
    """Give the files directly in a folder the rights of new files; safetensors makes files for their owner alone."""
    if os.name != "posix":
        return
    probe = folder / f".rights-{os.getpid()}-{os.urandom(4).hex()}"
    probe.touch()
    rights = stat.S_IMODE(probe.stat().st_mode)
    probe.unlink()
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            path.chmod(rights)


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn errors of safetensors and torch in the block, which only writes files, into an `OSError`.

    A `RuntimeError` of a class of its own, such as a GPU without memory, passes through as it is.
    """
    try:
        yield
    except SafetensorError as error:
        raise OSError(str(error)) from error
    except RuntimeError as error:
        if type(error) is not RuntimeError:
            raise
        raise OSError("a checkpoint could not be written completely; the disk may be full") from error


class LossSum(BaseModel):
    """The training losses of the steps since the last line of metrics, as far as one process has computed them."""

    model_config = STRICT

    total: float = 0.0  #: nats a predicted token; over all processes, a step's part is the mean over its tokens
    steps: Count = 0


class _CheckpointState(BaseModel):
    model_config = STRICT

    global_step: Count


@contextmanager
def checkpoint_errors(checkpoint: str | Path, *files: str) -> Iterator[None]:
    """Turn errors of loading files of a checkpoint in the block into one sentence.

    Raises:
        InputError: one of ``files`` is not there, or loading fails.
    """
    folder = Path(checkpoint)
    for name in files:
        if not (folder / name).is_file():
            raise InputError(f"the checkpoint lacks {name}; {REMEDY}", folder)
    with library_errors(f"{' or '.join(files)} of the checkpoint is damaged; {REMEDY}", folder):
        yield


def step_of(checkpoint: Path) -> int | None:
    """Return the number of steps after which a checkpoint was written; None: it is incomplete."""
    try:
        state = read_record(
            checkpoint / STATE, _CheckpointState, what="the state of the checkpoint", remedy="delete it"
        )
    except InputError:
        return None
    return state.global_step


def save_losses(checkpoint: str | Path, losses: LossSum, rank: int) -> None:
    """Put the losses of a process into a checkpoint."""
    write_json(Path(checkpoint) / _losses(rank), losses.model_dump())


def read_losses(checkpoint: str | Path, rank: int) -> LossSum:
    """Return the losses of a process.

    Raises:
        InputError: they are missing or damaged.
    """
    what = "the sum of losses of the checkpoint"
    return read_record(Path(checkpoint) / _losses(rank), LossSum, what=what, remedy=REMEDY)


def _losses(rank: int) -> str:
    return f"losses_{rank}.json"


def require_optimizer_state(optimizer: torch.optim.Optimizer) -> None:
    """Refuse an optimiser that has loaded a state of other parameters.

    Raises:
        ValueError: there is nothing, or a tensor of another shape.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    states = [(p, optimizer.state[p]) for p in parameters if optimizer.state.get(p)]
    if not states:
        raise ValueError("it holds no state of the optimiser")
    for parameter, state in states:
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and value.dim() and value.shape != parameter.shape:
                raise ValueError(f"{name} has the shape {tuple(value.shape)}, not {tuple(parameter.shape)}")
