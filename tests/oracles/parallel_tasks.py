"""Functions that the tests of parallel work send to other processes, which import them by name."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from truesource.grammar.support.errors import InputError


def square(x: int) -> int:
    """x * x."""
    return x * x


def refuse_seven(x: int) -> int:
    """An `InputError` at 7."""
    if x == 7:
        raise InputError("seven is refused", "numbers.txt", 7)
    return x


def first(item: tuple[object, ...]) -> str:
    """The text of the first part of an item."""
    return str(item[0])


def divide(x: int) -> float:
    """1 / x."""
    return 1 / x


def die_at_three(x: int) -> int:
    """Kill the process at 3."""
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def threads_of_loops(_: int) -> tuple[int, set[int], str]:
    """This process, those that a loop of joblib inside used, and the threads allowed."""
    from joblib import Parallel, delayed

    inside = set(Parallel(n_jobs=2, prefer="threads")(delayed(os.getpid)() for _ in range(4)))
    return os.getpid(), inside, os.environ["TRUESOURCE_THREADS"]


class Large:
    """Carries arrays; counts how often this copy was called."""

    def __init__(self) -> None:
        self.fixed = np.ones(1_000_000)
        self.fixed.flags.writeable = False
        self.free = np.arange(3.0)
        self.calls = 0

    def call(self, x: int) -> tuple[int, int, tuple[bool, bool], float]:
        """The process, the number of this call of this copy there, which arrays are writeable, and x + 1."""
        self.calls += 1
        time.sleep(0.02)
        self.free += 0
        return os.getpid(), self.calls, (self.fixed.flags.writeable, self.free.flags.writeable), self.fixed[x] + x


class Held:
    """Does item 0 at once, and each other item only when the file ``go`` is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def call(self, x: int) -> int:
        """x, whose file ``x.begun`` is there from now on."""
        (self.folder / f"{x}.begun").touch()
        while x and not (self.folder / "go").exists():
            time.sleep(0.02)
        return x


class Doomed:
    """Writes a file an item; whoever first comes to the item ``victim`` dies over it."""

    def __init__(self, folder: Path, victim: int) -> None:
        self.folder, self.victim = folder, victim

    def write(self, x: int) -> int:
        """Write the square of x."""
        mark = self.folder / "died"
        if x == self.victim and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.02)
        (self.folder / f"{x}.txt").write_text(f"{square(x)}\n", encoding="utf-8")
        return x
