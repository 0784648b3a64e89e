"""The processes of one training: how many there are, which one writes, and what only that one does.

Torch is imported only if `torchrun` started several.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


def world_size() -> int:
    """Return the number of processes that train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Return the number of this process among them, from 0 on."""
    return int(os.environ.get("RANK", "0"))


def is_main_process() -> bool:
    """Return True in the process that writes: the only one, or the first of several."""
    return rank() == 0


@contextmanager
def process_group() -> Iterator[None]:
    """Connect the processes while the block runs; see `truesource.lmtrain.distributed.connected`.

    Raises:
        InputError: as that function.
    """
    if world_size() == 1:
        yield
        return
    from truesource.lmtrain.distributed import connected

    with connected():
        yield


def from_main_process(make: Callable[[], T]) -> T:
    """Let the main process alone do something, and give all of them what it returned.

    Raises:
        InputError: in all processes, when ``make`` raised it in the main one.
    """
    if world_size() == 1:
        return make()
    from truesource.lmtrain.distributed import share_from_main

    return share_from_main(make)
