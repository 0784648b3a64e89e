"""Agreement of the processes that `torchrun` starts: who writes, how much they see together, when they stop.

Without `torchrun` there is one process, which agrees with itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import distributed

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.processes import is_main_process, world_size

T = TypeVar("T")


@contextmanager
def connected() -> Iterator[None]:
    """Connect the processes while the block runs: gloo between CPUs, NCCL between GPUs.

    Raises:
        InputError: there are more processes on this machine than GPUs, they cannot reach each other, or one of them
            has ended.
    """
    if distributed.is_initialized():
        yield
        return
    backend = "gloo"
    if torch.cuda.is_available():
        local, devices = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if local >= devices:
            raise InputError(f"this machine has {devices} GPUs; start at most {devices} processes on it")
        torch.cuda.set_device(local)
        backend = "cpu:gloo,cuda:nccl"
    try:
        distributed.init_process_group(backend)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the processes of this training cannot reach each other: {reason}") from error
    try:
        yield
    except RuntimeError as error:
        if not _connection_lost(error):
            raise
        raise InputError(
            "another process of this training has ended; run the same command again to resume from the last checkpoint"
        ) from error
    finally:
        distributed.destroy_process_group()


def _connection_lost(error: RuntimeError) -> bool:
    """Recognise the loss of the connection to another process.

    NCCL and the store raise a `DistError`. Gloo raises a plain RuntimeError without attributes (torch 2.13), so only
    its message shows the reason: it begins with the path of a file of gloo, or names the closed connection.
    """
    text = str(error)
    return isinstance(error, distributed.DistError) or any(mark in text for mark in ("gloo", "Connection closed"))


def any_process(*flags: bool) -> tuple[bool, ...]:
    """Return for each flag True if any process sets it."""
    if world_size() == 1:
        return flags
    table = torch.tensor(flags, dtype=torch.int32)
    distributed.all_reduce(table, op=distributed.ReduceOp.MAX)
    return tuple(bool(flag) for flag in table.tolist())


def total(count: int) -> int:
    """Return the sum of a count over the processes."""
    if world_size() == 1:
        return count
    table = torch.tensor([count], dtype=torch.int64)
    distributed.all_reduce(table)
    return int(table.item())


def sum_of(value: float) -> float:
    """Return the sum of a number over the processes, in float64."""
    if world_size() == 1:
        return value
    table = torch.tensor([value], dtype=torch.float64)
    distributed.all_reduce(table)
    return float(table.item())


def share_from_main(make: Callable[[], T]) -> T:
    """Let the main process alone do something, and give all of them what it returned.

    Raises:
        InputError: in all processes, when ``make`` raised it in the main one.
    """
    answer: list[tuple[T | None, InputError | None]] = [(None, None)]
    if is_main_process():
        try:
            answer = [(make(), None)]
        except InputError as error:
            answer = [(None, error)]
    distributed.broadcast_object_list(answer, src=0)
    value, failure = answer[0]
    if failure is not None:
        raise failure
    return value  # type: ignore[return-value]


def wait_for_all() -> None:
    """Wait until every process has reached this call."""
    if world_size() > 1:
        distributed.barrier()
