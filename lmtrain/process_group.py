"""Joint work of the processes of one training; torch is imported only if `torchrun` started several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from truesource.lmtrain.processes import world_size

T = TypeVar("T")


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
