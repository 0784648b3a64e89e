"""What a checkpoint must hold for a run to go on from it: all of it, or the run would end with other weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from pydantic import BaseModel

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import write_json
from truesource.grammar.support.records import STRICT, Count, read_record
from truesource.lmtrain.loading import library_errors

STATE = "trainer_state.json"  #: written last
REMEDY = "delete this checkpoint, and the run goes on from an earlier one"


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
    """Inside the block files of a checkpoint are loaded.

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
    """After how many steps a checkpoint was written; None: it was not written to its end."""
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
    """The losses of a process; none where the checkpoint is of an earlier version, which did not keep them.

    Raises:
        InputError: they are damaged.
    """
    path = Path(checkpoint) / _losses(rank)
    what = "the sum of losses of the checkpoint"
    return read_record(path, LossSum, what=what, remedy=REMEDY) if path.is_file() else LossSum()


def _losses(rank: int) -> str:
    return f"losses_{rank}.json"


def require_optimizer_state(optimizer: torch.optim.Optimizer) -> None:
    """Stop where what an optimiser has loaded is not of its parameters.

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
