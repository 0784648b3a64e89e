"""Busy processes beside a measurement, as on a laptop that does something else, too."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager


def busy(end: float) -> None:
    """Keep one core busy until a time."""
    while time.time() < end:
        sum(range(10_000))


@contextmanager
def beside(number: int) -> Iterator[None]:
    """Run busy processes while the block runs."""
    processes = [multiprocessing.Process(target=busy, args=(time.time() + 3600,)) for _ in range(number)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
