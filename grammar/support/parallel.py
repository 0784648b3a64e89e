"""One function applied to many items: in processes of this machine, on a Dask cluster, or shared out among jobs."""

from __future__ import annotations

import mmap
import os
import pickle
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.joblib_results import quiet_end

Item = TypeVar("Item")
Result = TypeVar("Result")
PARENT_EVERY = 0.5  #: seconds between looks of a worker at the process that started it
ALIGNMENT = 64  #: bytes; where arrays begin in the file that worker processes map


@dataclass(frozen=True)
class Workers:
    """Where work is done: in ``n`` processes of this machine, or by all workers of a running Dask cluster.

    Raises:
        InputError: ``n`` is below 1, or above 1 together with a scheduler; or there is no such scheduler file.
    """

    n: int = 1  #: processes; 1 is this one alone
    scheduler: str | None = None  #: address (``tcp://host:8786``), or what ``dask scheduler --scheduler-file`` wrote

    def __post_init__(self) -> None:
        if self.n < 1:
            raise InputError(f"the number of workers is 1 or more, got {self.n}")
        if self.scheduler is not None and self.n > 1:
            raise InputError("a Dask cluster brings its own workers; give --workers or --scheduler, not both")
        if self.scheduler is not None:
            from truesource.grammar.support.cluster import scheduler_address

            scheduler_address(self.scheduler)


@dataclass(frozen=True)
class Share:
    """Part number k belongs to job ``index`` of ``of`` when ``k % of == index``; 0 <= index < of."""

    index: int = 0
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Share:
        """``0/4`` is the first of four.

        Raises:
            InputError: it is not written like that.
        """
        index, separator, of = text.partition("/")
        if not (separator and index.isdecimal() and of.isdecimal() and int(index) < int(of)):
            raise InputError(f"a shard is written i/n with i from 0 to n-1, such as 0/4, got {text!r}")
        return cls(int(index), int(of))

    def owns(self, k: int) -> bool:
        """Whether part number ``k`` is this job's."""
        return k % self.of == self.index


def run_each(
    function: Callable[[Item], Result], items: Sequence[Item], workers: Workers | None = None
) -> Generator[Result]:
    """Yield ``function(item)`` of every item, as they finish; the order is not that of the items.

    What the function carries (the object of a bound method, the arguments of a `functools.partial`) reaches each
    worker once and is kept there; processes of one machine share the memory of its arrays. Each item may be computed
    more than once where a worker of a cluster dies, so a function that writes files replaces them whole. Cores are
    shared out: the threads of a worker are ``TRUESOURCE_THREADS`` over ``n``, and on a cluster what its workers have
    in that variable, or else one.

    Args:
        function: a function of a module, a method or a partial of one, that can be pickled with its results and errors.
        items: small values; large constant ones belong to the function.
        workers: one process, this one, by default.

    Raises:
        InputError: raised by the function; a worker process was killed; or, of a cluster: Dask is not installed, the
            scheduler went away or does not answer within Dask's ``distributed.comm.timeouts.connect``, no worker came
            within a minute, workers have another version of truesource, or items killed their workers again and again.
    """
    workers = workers or Workers()
    if workers.scheduler is not None:
        from truesource.grammar.support.cluster import run_on_cluster

        yield from run_on_cluster(function, items, workers.scheduler)
    elif min(workers.n, len(items)) > 1:
        yield from _in_processes(function, items, min(workers.n, len(items)))
    else:
        yield from map(function, items)


def _in_processes(function: Callable[[Item], Result], items: Sequence[Item], n: int) -> Iterator[Result]:
    from joblib import Parallel, delayed

    from truesource.grammar.inference.batch import threads

    _skip_dropped_items()
    with _stored(function, max(1, threads() // n)) as stored:
        pool = Parallel(n_jobs=n, return_as="generator_unordered")
        try:
            with quiet_end(pool(delayed(stored)(item) for item in items)) as results:
                for result in results:  # noqa: UP028 - `yield from` would let joblib warn
                    yield result
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process was killed, perhaps for want of memory; the same call goes on, with fewer --workers"
                " if it was memory"
            ) from error


@cache
def _skip_dropped_items() -> None:
    """Let a call that is stopped early end in order.

    loky then drops the items that wait, but not their numbers, and where it meets one of these, the thread that
    manages the workers dies of a `KeyError` and leaves them behind.
    """
    from joblib.externals.loky.process_executor import _ExecutorManagerThread

    fill = _ExecutorManagerThread.add_call_item_to_queue

    def fill_with_what_is_there(manager: Any) -> None:
        while True:
            try:
                fill(manager)
            except KeyError:  # it has taken one number from the queue
                continue
            return

    _ExecutorManagerThread.add_call_item_to_queue = fill_with_what_is_there


@dataclass(frozen=True)
class _Stored:
    """A function whose pickle lies in a file; a process reads it once and keeps the last one."""

    file: str
    spans: tuple[tuple[int, int, bool], ...]  #: start and stop in the file, and whether read-only; the pickle is last
    threads: int
    _loaded: ClassVar[tuple[str, Callable[[Any], Any]]]

    def __call__(self, item: Any) -> Any:
        if getattr(_Stored, "_loaded", ("", None))[0] != self.file:
            _end_with(os.getppid())
            _keep_workers()
            os.environ["TRUESOURCE_THREADS"] = str(self.threads)
            with Path(self.file).open("rb") as stream:
                view = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY))
            parts = [view[a:b].toreadonly() if fixed else view[a:b] for a, b, fixed in self.spans]
            _Stored._loaded = (self.file, pickle.loads(parts[-1], buffers=parts[:-1]))
        return _Stored._loaded[1](item)


@cache
def _keep_workers() -> None:
    """Let this worker process hold what it has loaded: joblib would replace it where its memory grows by 300 MB."""
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize


@cache
def _end_with(parent: int) -> None:
    """End this worker process when the one that started it has gone, so that no killed call goes on behind the next."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _stored(function: Callable[[Any], Any], threads: int) -> Iterator[_Stored]:
    """Write a function to a temporary file, its arrays apart, so that processes can map them."""
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(function, protocol=5, buffer_callback=buffers.append)
    folder = Path(tempfile.mkdtemp(prefix=f"truesource-{os.getpid()}-"))
    try:
        spans = []
        with (folder / "function").open("wb") as stream:
            for view in (*(buffer.raw() for buffer in buffers), memoryview(body)):
                start = stream.seek(-stream.tell() % ALIGNMENT, os.SEEK_CUR)
                spans.append((start, start + stream.write(view), view.readonly))
        yield _Stored(str(folder / "function"), tuple(spans), threads)
    except OSError as error:
        if error.filename is None or not str(error.filename).startswith(str(folder)):
            raise
        raise InputError(
            f"cannot store what the workers need: {error.strerror or error}; set TMPDIR", folder
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
