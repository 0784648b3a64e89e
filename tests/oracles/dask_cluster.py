"""A Dask scheduler and workers on the loopback, as a user would start them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

HERE = Path(__file__).parent


@contextmanager
def dask_cluster(folder: Path, workers: int = 2) -> Iterator[Path]:
    """Give the scheduler file of a running cluster; its processes end with the block."""
    file = folder / "scheduler.json"
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "DASK_DISTRIBUTED__WORKER__DAEMON": "true",
        "DASK_TEMPORARY_DIRECTORY": str(folder / "scratch"),
    }
    dask = [sys.executable, "-m", "dask"]
    calls = [[*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file]]
    calls += [
        [*dask, "worker", "--scheduler-file", file, "--nworkers", "1", "--nthreads", "1", "--no-dashboard"]
        for _ in range(workers)
    ]
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log.txt").open("w"))
        for call in calls:
            process = subprocess.Popen(call, cwd=folder, env=environment, stdout=log, stderr=log)
            stack.callback(_end, process)
        wait_for(file)
        yield file


def wait_for(file: Path, seconds: float = 60.0) -> None:
    """Until a file is there."""
    end = time.monotonic() + seconds
    while not file.exists():
        if time.monotonic() > end:
            raise TimeoutError(file)
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
