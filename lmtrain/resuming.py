"""What a checkpoint must hold for a run to go on from it: all of it, or the run would end with other weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from pydantic import BaseModel

from grammar.errors import InputError
from grammar.records import STRICT, Count, read_record
from lmtrain.loading import library_errors

STATE = "trainer_state.json"  #: written last


class _State(BaseModel):
    model_config = STRICT

    global_step: Count


@contextmanager
def checkpoint_errors(checkpoint: str | Path, *files: str) -> Iterator[None]:
    """Inside the block files of a checkpoint are loaded.

    Raises:
        InputError: one of ``files`` is not there, or loading fails.
    """
    folder = Path(checkpoint)
    remedy = "delete this checkpoint, and the run goes on from an earlier one"
    for name in files:
        if not (folder / name).is_file():
            raise InputError(f"the checkpoint lacks {name}; {remedy}", folder)
    with library_errors(f"{' or '.join(files)} of the checkpoint is damaged; {remedy}", folder):
        yield


def step_of(checkpoint: Path) -> int | None:
    """After how many steps a checkpoint was written; None: it was not written to its end."""
    try:
        state = read_record(checkpoint / STATE, _State, what="the state of the checkpoint", remedy="delete it")
    except InputError:
        return None
    return state.global_step


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
