"""Tasks in a folder: workers execute a job's share of them, each in one process at a time.

The cells of a sweep and of a benchmark are tasks. Finished tasks are kept; interrupted ones resume, because
each task writes complete files and its record last; a task that fails does not stop the others. Several jobs may share
a folder (`Share`), and so may several calls: a lock prevents two of them from executing one task. The stages of a run,
which build on each other, are executed in order by `truesource.run.runner`.
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
    """A function that executes a task; it must be picklable for worker processes."""

    def __call__(self, task: T_contra, /, *, wait: bool) -> None:
        """Execute it, unless another process does; with ``wait``, after that process has ended.

        Raises:
            BusyError: another process is working on it, and ``wait`` is false.
            InputError: the task fails.
        """


@dataclass(frozen=True)
class Failure(Generic[T]):
    """A failed task; the next call retries it."""

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
    """Execute this job's unfinished tasks, and log progress and remaining time.

    Args:
        tasks: all tasks, in the same order for every job; ``str`` describes a task.
        make: executes a task.
        finished: returns True if a task is finished.
        share: share of this job.
        workers: worker processes; None: this process.
        wait: wait at the end for tasks of other processes; otherwise leave them.

    Returns:
        Failed tasks.
    """
    share_of_job = [number for number in range(len(tasks)) if share.owns(number)]
    missing = [number for number in share_of_job if not finished(tasks[number])]
    if len(missing) < len(share_of_job):
        log.info("finished already: %d of %s", len(share_of_job) - len(missing), count(len(share_of_job), "cell"))
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
            log.info("waiting for another process, which is working on %s", tasks[number])
            report(*_attempt(make, tasks, number, wait=True))
        else:
            log.info("%s: another process is working on it", tasks[number])
    return failures


def _attempt(make: Make[T], tasks: Sequence[T], number: int, *, wait: bool = False) -> tuple[int, InputError | None]:
    """Execute a task; return its number, and its error if it failed."""
    try:
        make(tasks[number], wait=wait)
    except InputError as error:
        return number, error
    return number, None


class _Progress:
    """Progress messages: number of finished tasks, and remaining time."""

    def __init__(self, n: int) -> None:
        self._n, self._done, self._begun = n, 0, time.perf_counter()

    def report(self, task: object, error: InputError | None) -> None:
        """Report a finished or failed task."""
        self._done += 1
        left = self._n - self._done
        seconds = seconds_left(self._done, time.perf_counter() - self._begun, self._done, left)
        about = "" if seconds is None else f", about {duration(seconds)}"
        rest = f"; {left} to go{about}" if left else ""
        if error is None:
            log.info("[%d/%d] %s: done%s", self._done, self._n, task, rest)
        else:
            log.warning("[%d/%d] %s failed: %s", self._done, self._n, task, error)


def refuse_foreign(folder: Path, mark: str, message: str, allowed: Collection[str] = ()) -> None:
    """Refuse a non-empty folder that this call cannot resume.

    Args:
        folder: folder of tasks or stages.
        mark: file that a folder of this kind has.
        message: message of the error, with advice.
        allowed: names that may exist without it; names that begin with a dot always may, as kills leave some.

    Raises:
        InputError: the folder is refused.
    """
    if not folder.exists() or (folder / mark).is_file():
        return
    if not folder.is_dir() or any(path.name[0] != "." and path.name not in allowed for path in folder.iterdir()):
        raise InputError(message, folder)
