"""Tasks in a folder: a job's share of them, made by its workers, each by one process at a time.

The cells of a sweep and of a benchmark are tasks. What is finished is kept; what was begun goes on where it stopped, as
each task writes its files whole and its record last; a task that fails does not stop the others. Several jobs may share
a folder (`Share`), and so may several calls: a lock keeps two from one task. The stages of a run, which build on each
other, are made in order by `truesource.run.runner`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from truesource.evaluation.show.words import count, duration
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.locks import BusyError
from truesource.grammar.support.parallel import Share, Workers, run_each
from truesource.grammar.support.printable import seconds_left

log = logging.getLogger("truesource")

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Make(Protocol[T_contra]):
    """Makes a task; reaches worker processes, so it can be pickled."""

    def __call__(self, task: T_contra, /, *, wait: bool) -> None:
        """Make it, unless another process does; with ``wait``, once that one has ended.

        Raises:
            BusyError: another process is at work on it, and ``wait`` is false.
            InputError: it cannot be made.
        """


@dataclass(frozen=True)
class Failure(Generic[T]):
    """A task that could not be made; the next call tries it again."""

    task: T
    reason: str  #: one sentence


def make_tasks(
    tasks: Sequence[T],
    make: Make[T],
    *,
    finished: Callable[[T], bool],
    share: Share,
    workers: Workers | None = None,
    wait: bool = False,
) -> list[Failure[T]]:
    """Make this job's tasks that are not finished; what each does, and how long the others will take, is logged.

    Args:
        tasks: all of them, in an order that every job has; ``str`` says what a task is.
        make: makes one.
        finished: tells whether one needs nothing.
        share: which of them are this job's.
        workers: who makes them; None: this process.
        wait: wait at the end for those that other processes are at work on; otherwise they are left to them.

    Returns:
        Those that cannot be made.
    """
    own = [number for number in range(len(tasks)) if share.owns(number)]
    missing = [number for number in own if not finished(tasks[number])]
    if len(missing) < len(own):
        log.info("finished already: %d of %s", len(own) - len(missing), count(len(own), "cell"))
    progress, failures, busy = _Progress(len(missing)), [], []

    def report(number: int, error: InputError | None) -> None:
        progress.report(tasks[number], error)
        if error is not None:
            failures.append(Failure(tasks[number], str(error)))

    for number, error in run_each(partial(_attempt, make, tasks), missing, workers):
        if isinstance(error, BusyError):
            busy.append(number)
        else:
            report(number, error)
    for number in busy:
        if wait:
            log.info("waiting for another process, which is at work on %s", tasks[number])
            report(*_attempt(make, tasks, number, wait=True))
        else:
            log.info("%s: another process is at work on it", tasks[number])
    return failures


def _attempt(make: Make[T], tasks: Sequence[T], number: int, *, wait: bool = False) -> tuple[int, InputError | None]:
    """Number of a task, and the error that making it raised, where it did."""
    try:
        make(tasks[number], wait=wait)
    except InputError as error:
        return number, error
    return number, None


class _Progress:
    """Lines about tasks that are done: how many, and how long the others will take."""

    def __init__(self, n: int) -> None:
        self._n, self._done, self._begun = n, 0, time.perf_counter()

    def report(self, task: object, error: InputError | None) -> None:
        """One more is made, or has failed."""
        self._done += 1
        left = self._n - self._done
        seconds = seconds_left(self._done, time.perf_counter() - self._begun, self._done, left)
        about = "" if seconds is None else f", about {duration(seconds)}"
        rest = f"; {left} to go{about}" if left else ""
        if error is None:
            log.info("[%d/%d] %s: done%s", self._done, self._n, task, rest)
        else:
            log.warning("[%d/%d] %s failed: %s", self._done, self._n, task, error)


def refuse_foreign(folder: Path, mark: str, message: str, besides: Collection[str] = ()) -> None:
    """Stop before a folder that holds something, and not what this call would go on with.

    Args:
        folder: where tasks or stages are made.
        mark: the file that a folder of this kind has.
        message: of the error: what to do instead.
        besides: names that may stand there without it; names that begin with a dot always may, a kill leaves some.

    Raises:
        InputError: it does.
    """
    if not folder.exists() or (folder / mark).is_file():
        return
    if not folder.is_dir() or any(path.name[0] != "." and path.name not in besides for path in folder.iterdir()):
        raise InputError(message, folder)
