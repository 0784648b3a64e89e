"""Apply one function to many items: in processes of this machine, on a Dask cluster, or divided among jobs."""

from __future__ import annotations

import logging
import mmap
import os
import pickle
import shutil
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.support.errors import InputError, extras_for
from truesource.grammar.support.records import STRICT, read_record
from truesource.grammar.support.threads import VARIABLE, threads

if TYPE_CHECKING:
    from distributed import Client

PARENT_EVERY = 0.5  #: seconds between checks of a worker for its parent process
ALIGNMENT = 64  #: bytes; alignment of arrays in the file that worker processes map
FIRST_WORKER = 60.0  #: seconds to wait for the first worker
HALF_WRITTEN = 20  #: attempts to read a damaged scheduler file, 50 ms apart: Dask does not write it atomically
IN_FLIGHT = 256  #: least number of items sent to the scheduler at a time, so that later workers get work
ATTEMPTS = 3  #: consecutive losses of all workers without a result, or failed starts of Dask's thread, before giving up


@contextmanager
def quiet_end(results: Generator[Result]) -> Iterator[Iterator[Result]]:
    """Close the results of joblib, without its warning if not all were consumed."""
    try:
        yield results
    finally:
        with warnings.catch_warnings(), closing(results):
            warnings.simplefilter("ignore", UserWarning)
            results.close()


Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Workers:
    """The place of work: ``n`` processes of this machine, or all workers of a running Dask cluster.

    Raises:
        InputError: ``n`` is below 1, or above 1 together with a scheduler; or there is no such scheduler file.
    """

    n: int = 1  #: processes; 1: this process alone
    scheduler: str | None = None  #: address (``tcp://host:8786``), or the file of ``dask scheduler --scheduler-file``

    def __post_init__(self) -> None:
        if self.n < 1:
            raise InputError(f"the number of workers must be 1 or more, got {self.n}")
        if self.scheduler is not None and self.n > 1:
            raise InputError("a Dask cluster has its own workers; use --workers or --scheduler, not both")
        if self.scheduler is not None:
            scheduler_address(self.scheduler)


@dataclass(frozen=True)
class Share:
    """A job's share: job ``index`` of ``of`` gets part number k if ``k % of == index``; 0 <= index < of."""

    index: int = 0
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Share:
        """Read a share; ``0/4`` is the first of four.

        Raises:
            InputError: the text has another form.
        """
        index, separator, of = text.partition("/")
        if not (separator and index.isdecimal() and of.isdecimal() and int(index) < int(of)):
            raise InputError(f"expecting a shard i/n with i from 0 to n-1, such as 0/4, got {text!r}")
        return cls(int(index), int(of))

    def owns(self, k: int) -> bool:
        """Return True if part number ``k`` belongs to this job."""
        return k % self.of == self.index


def run_each(
    function: Callable[[Item], Result], items: Sequence[Item], workers: Workers | None = None
) -> Generator[Result]:
    """Yield ``function(item)`` of every item, in the order in which they finish.

    Data of the function (the object of a bound method, the arguments of a `functools.partial`) reach each worker once
    and are cached there; processes of one machine share the memory of its arrays. An item may be computed more than
    once if a worker of a cluster dies, so a function that writes files must replace them atomically. Cores are divided:
    a worker has ``TRUESOURCE_THREADS`` over ``n`` threads, or on a cluster the value of that variable there, else one.

    Args:
        function: a function of a module, a method or a partial of one; it, its results and errors can be pickled.
        items: small values; large constant ones belong to the function.
        workers: this process alone, by default.

    Raises:
        InputError: raised by the function; a worker process was killed; or, of a cluster: Dask is not installed, the
            scheduler went away or does not answer within Dask's ``distributed.comm.timeouts.connect``, no worker came
            within a minute, workers have another version of truesource, or items killed their workers repeatedly.
    """
    workers = workers or Workers()
    if workers.scheduler is not None:
        yield from run_on_cluster(function, items, workers.scheduler)
    elif min(workers.n, len(items)) > 1:
        yield from _in_processes(function, items, min(workers.n, len(items)))
    else:
        yield from map(function, items)


def _in_processes(function: Callable[[Item], Result], items: Sequence[Item], n: int) -> Iterator[Result]:
    from joblib import Parallel, delayed

    _skip_dropped_items()
    with _stored(function, max(1, threads() // n)) as stored:
        pool = Parallel(n_jobs=n, return_as="generator_unordered")
        try:
            with quiet_end(pool(delayed(stored)(item) for item in items)) as results:
                for result in results:  # noqa: UP028 - `yield from` would let joblib warn
                    yield result
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process was killed, perhaps for lack of memory; repeat the same call to resume, with fewer"
                " --workers if memory was short"
            ) from error


@cache
def _skip_dropped_items() -> None:
    """Let an interrupted call end cleanly.

    loky then drops the waiting items, but not their numbers; when it meets one of these, the thread that manages the
    workers dies of a `KeyError` and leaves them behind.
    """
    from joblib.externals.loky import process_executor

    # private names, which later versions may lack
    manager_thread: Any = getattr(process_executor, "_ExecutorManagerThread", None)
    fill = getattr(manager_thread, "add_call_item_to_queue", None)
    if fill is None:
        return

    def fill_with_what_is_there(manager: Any) -> None:
        while True:
            try:
                fill(manager)
            except KeyError:  # it has taken one number from the queue
                continue
            return

    manager_thread.add_call_item_to_queue = fill_with_what_is_there


@dataclass(frozen=True)
class _Stored:
    """A function whose pickle is in a file; a process loads it once and caches the last one."""

    file: str
    spans: tuple[tuple[int, int, bool], ...]  #: start and stop in the file, and whether read-only; the pickle is last
    threads: int
    _loaded: ClassVar[tuple[str, Callable[[Any], Any]]]

    def __call__(self, item: Any) -> Any:
        if getattr(_Stored, "_loaded", ("", None))[0] != self.file:
            _end_with(os.getppid())
            _keep_workers()
            os.environ[VARIABLE] = str(self.threads)
            with Path(self.file).open("rb") as stream:
                view = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY))
            parts = [view[a:b].toreadonly() if fixed else view[a:b] for a, b, fixed in self.spans]
            _Stored._loaded = (self.file, pickle.loads(parts[-1], buffers=parts[:-1]))
        return _Stored._loaded[1](item)


@cache
def _keep_workers() -> None:
    """Let this worker process keep loaded data: joblib would replace it if its memory grows by 300 MB."""
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize


@cache
def _end_with(parent: int) -> None:
    """End this worker process when its parent has ended, so that no killed call continues behind the next."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _stored(function: Callable[[Any], Any], threads: int) -> Iterator[_Stored]:
    """Write a function to a temporary file, its arrays separately, so that processes can map them."""
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
            f"cannot store data of the workers: {error.strerror or error}; set TMPDIR to another folder", folder
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _DaskError(Exception):
    """Dask did not finish an item, for a cause outside the function."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _WorkerTraceback(Exception):  # noqa: N818 - it is no error itself
    """Traceback of an error on a worker."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _Item:
    """An item that hides its content from Dask, which would treat tuples and strings in it as tasks and their names."""

    def __init__(self, value: Any) -> None:
        self.value = value


def run_on_cluster(function: Callable[[Item], Result], items: Sequence[Item], scheduler: str) -> Iterator[Result]:
    """Yield `truesource.grammar.support.parallel.run_each` by the workers of a scheduler.

    Dask moves the items of a dead worker to another. If all died, and the function with them, the remaining items are
    sent again to later workers.

    Raises:
        InputError: as `truesource.grammar.support.parallel.run_each`.
    """
    left = dict(enumerate(items))
    failures = 0
    with connected(scheduler) as client:
        while left:
            _require_workers(client, scheduler)
            try:
                for k, result in _results(client, function, left):
                    del left[k]
                    failures = 0
                    yield result
            except _DaskError as error:
                failures += 1
                _explain(error, client, scheduler, failures)


def _results(client: Client, function: Callable[[Item], Result], left: dict[int, Item]) -> Iterator[tuple[int, Result]]:
    """Yield numbers of items and their results, as they finish; items of a dead worker go to another."""
    from distributed import as_completed

    call = os.urandom(16).hex()  # all distinct: Dask identifies equal names, even while dropping them
    waiting = iter(list(left.items()))
    finished = as_completed(loop=client.loop, with_results=True, raise_errors=False)
    try:
        [sent] = client.scatter([function], broadcast=True, hash=False)  # to every worker, before the items
    except (OSError, CancelledError) as error:  # workers died while it was sent
        raise _DaskError(CancelledError(str(error))) from error

    def send(most: int) -> None:
        for k, item in islice(waiting, most):
            finished.add(client.submit(_call, sent, k, _Item(item), key=f"truesource-{call}-{k}"))

    try:
        send(max(IN_FLIGHT, 2 * sum(client.ncores().values())))
        for task, result in finished:
            if task.status != "finished":
                raise _DaskError(result[1] if task.status == "error" else CancelledError(task.status))
            k, value, raised, where = result
            if raised is not None:
                raise raised from _WorkerTraceback(where)
            yield k, value
            send(1)
    finally:
        finished.clear()


def _call(function: Callable[[Any], Any], k: int, item: _Item) -> tuple[int, Any, Exception | None, str]:
    """Return one item on the worker: its number, its result or error, and the traceback of the error.

    An error is a result, so that errors raised by Dask are its own. Loops inside run on the worker.
    """
    from joblib import parallel_config

    os.environ.setdefault(VARIABLE, "1")
    try:
        with parallel_config(backend="threading"):
            return k, function(item.value), None, ""
    except Exception as error:
        return k, None, error, traceback.format_exc()


@contextmanager
def connected(scheduler: str) -> Iterator[Client]:
    """Connect to the scheduler for the block.

    Raises:
        InputError: Dask is not installed, or no scheduler answers within ``distributed.comm.timeouts.connect``.
    """
    with extras_for("--scheduler"):
        from dask import config
        from dask.utils import parse_timedelta
        from distributed import Client
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # relevant messages become an `InputError`
    address = scheduler_address(scheduler)
    answer = parse_timedelta(config.get("distributed.comm.timeouts.connect"))
    client, attempts = None, count(1)
    while client is None:
        try:
            client = Client(address, timeout=answer, set_as_default=False)
        except AssertionError:  # its thread has ten seconds to start; a suspended machine needs more
            if next(attempts) == ATTEMPTS:
                raise
        except (OSError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {address} within {answer:.0f} seconds; start one with dask scheduler,"
                " or correct --scheduler"
            ) from error
    try:
        yield client
    finally:
        with suppress(TimeoutError):
            client.close(timeout=2)


@with_config(STRICT)
class _SchedulerFile(TypedDict):
    """Keys read from the file of ``dask scheduler --scheduler-file``."""

    address: str


def scheduler_address(scheduler: str) -> str:
    """Return the address itself, or the one in the file of ``dask scheduler --scheduler-file``.

    A partly written file is read again until it is complete.

    Raises:
        InputError: there is no such file, or it has other content.
    """
    if "://" in scheduler:
        return scheduler
    file = Path(scheduler)
    absent = (
        "there is no such scheduler file; start dask scheduler --scheduler-file FILE, or give an address such as"
        " tcp://host:8786"
    )
    what, remedy = "the file of the Dask scheduler", "use the file of --scheduler-file"
    readings = count(1)
    while True:
        try:
            return read_record(file, _SchedulerFile, what=what, remedy=remedy, absent=absent)["address"]
        except InputError as error:
            if error.code != "damaged" or next(readings) > HALF_WRITTEN:
                raise
        time.sleep(0.05)


def _require_workers(client: Client, scheduler: str) -> None:
    """Wait for the first worker; all must run this version."""
    try:
        client.wait_for_workers(1, timeout=FIRST_WORKER)
        result = client.run(_version, on_error="return")
    except TimeoutError as error:
        raise InputError(
            f"the Dask cluster has had no worker for {FIRST_WORKER:.0f} seconds; start some: dask worker {scheduler}"
        ) from error
    except OSError as error:
        raise InputError(f"the Dask scheduler at {scheduler} went away; repeat the same call to resume") from error
    for address, theirs in result.items():
        if not isinstance(theirs, OSError) and theirs != _version():
            raise InputError(
                f"the Dask worker at {address} has truesource {theirs}, here is {_version()}; install the same version"
            )


def _version() -> str:
    return version("truesource")


def _explain(failure: _DaskError, client: Client, scheduler: str, failures: int) -> None:
    """Raise an error unless resending the remaining items makes sense."""
    resume = "repeat the same call to resume"
    if client.status != "running":
        raise InputError(f"the Dask scheduler at {scheduler} went away; {resume}") from failure.cause
    if type(failure.cause).__name__ == "KilledWorker":
        raise InputError(
            f"several Dask workers died over the same item, perhaps for lack of memory; see their logs, then {resume}"
        ) from failure.cause
    if not isinstance(failure.cause, CancelledError):
        raise InputError(f"a Dask worker cannot do this work: {failure.cause}") from failure.cause
    if failures > ATTEMPTS:
        raise InputError(
            f"all Dask workers died {failures} times in a row; see their logs, then {resume}"
        ) from failure.cause
