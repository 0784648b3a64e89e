"""Work on a running Dask cluster."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.extras import extras_for
from truesource.grammar.support.records import STRICT, read_record

if TYPE_CHECKING:
    from distributed import Client

Item = TypeVar("Item")
Result = TypeVar("Result")
FIRST_WORKER = 60.0  #: seconds until a worker must be there
IN_FLIGHT = 256  #: least items handed to the scheduler at a time, so that workers that come later find work
ATTEMPTS = 3  #: times in a row that all workers may vanish without a result


class _DaskError(Exception):
    """Dask did not bring an item to its end, for a cause outside the function."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _WorkerTraceback(Exception):  # noqa: N818 - it is no error of its own
    """Where an error was raised on a worker."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _Item:
    """An item, into which Dask does not look: it would take tuples and texts in it for tasks and their names."""

    def __init__(self, value: Any) -> None:
        self.value = value


def run_on_cluster(function: Callable[[Item], Result], items: Sequence[Item], scheduler: str) -> Iterator[Result]:
    """`truesource.grammar.support.parallel.run_each` by the workers of a scheduler.

    Dask gives the items of a worker that died to another. Where all died, and the function with them, the items that
    are left are sent again to those that come next.

    Raises:
        InputError: as `truesource.grammar.support.parallel.run_each`.
    """
    left = dict(enumerate(items))
    failures = 0
    with _connected(scheduler) as client:
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
    """Numbers of items and their results, as they finish; those that a dead worker had go to another."""
    from distributed import as_completed

    call = os.urandom(16).hex()  # all different: Dask takes equal names for the same, even while dropping them
    waiting = iter(list(left.items()))
    finished = as_completed(loop=client.loop, with_results=True, raise_errors=False)
    try:
        [sent] = client.scatter([function], broadcast=True, hash=False)  # to every worker, ahead of the items
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
    """One item on the worker: its number, its result or error, and where that was raised.

    An error is a result, so that those that Dask raises are its own. Loops inside stay on the worker.
    """
    from joblib import parallel_config

    os.environ.setdefault("TRUESOURCE_THREADS", "1")
    try:
        with parallel_config(backend="threading"):
            return k, function(item.value), None, ""
    except Exception as error:
        return k, None, error, traceback.format_exc()


@contextmanager
def _connected(scheduler: str) -> Iterator[Client]:
    with extras_for("--scheduler"):
        from dask import config
        from dask.utils import parse_timedelta
        from distributed import Client
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # what matters of it ends in an `InputError`
    address = scheduler_address(scheduler)
    answer = parse_timedelta(config.get("distributed.comm.timeouts.connect"))
    try:
        client = Client(address, timeout=answer, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address} within {answer:.0f} seconds; start one with dask scheduler, or"
            " correct --scheduler"
        ) from error
    try:
        yield client
    finally:
        with suppress(TimeoutError):
            client.close(timeout=2)


@with_config(STRICT)
class _SchedulerFile(TypedDict):
    """What is read of the file that ``dask scheduler --scheduler-file`` writes."""

    address: str


def scheduler_address(scheduler: str) -> str:
    """The address itself, or the one in the file that ``dask scheduler --scheduler-file`` wrote.

    Raises:
        InputError: there is no such file, or it holds something else.
    """
    if "://" in scheduler:
        return scheduler
    file = Path(scheduler)
    absent = (
        "there is no such scheduler file; start dask scheduler --scheduler-file FILE, or give an address such as"
        " tcp://host:8786"
    )
    what, remedy = "the file of the Dask scheduler", "name what --scheduler-file wrote"
    return read_record(file, _SchedulerFile, what=what, remedy=remedy, absent=absent)["address"]


def _require_workers(client: Client, scheduler: str) -> None:
    """Wait for the first; all must run this version."""
    try:
        client.wait_for_workers(1, timeout=FIRST_WORKER)
        found = client.run(_version, on_error="return")
    except TimeoutError as error:
        raise InputError(
            f"the Dask cluster has had no worker for {FIRST_WORKER:.0f} seconds; start some: dask worker {scheduler}"
        ) from error
    except OSError as error:
        raise InputError(f"the Dask scheduler at {scheduler} went away; the same call goes on") from error
    for address, theirs in found.items():
        if not isinstance(theirs, OSError) and theirs != _version():
            raise InputError(
                f"the Dask worker at {address} has truesource {theirs}, here is {_version()}; install the same"
            )


def _version() -> str:
    return version("truesource")


def _explain(failure: _DaskError, client: Client, scheduler: str, failures: int) -> None:
    """Raise unless it makes sense to send again what is left."""
    goes_on = "the same call goes on from what is finished"
    if client.status != "running":
        raise InputError(f"the Dask scheduler at {scheduler} went away; {goes_on}") from failure.cause
    if type(failure.cause).__name__ == "KilledWorker":
        raise InputError(
            f"several Dask workers died over the same item, perhaps for want of memory; see their logs, {goes_on}"
        ) from failure.cause
    if not isinstance(failure.cause, CancelledError):
        raise InputError(f"a Dask worker cannot do this work: {failure.cause}") from failure.cause
    if failures > ATTEMPTS:
        raise InputError(
            f"all Dask workers died {failures} times in a row; see their logs, {goes_on}"
        ) from failure.cause
