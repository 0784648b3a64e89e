"""A Dask scheduler and workers on the loopback, as a user would start them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SAFETY = 1800.0  #: seconds; ends only what hangs, also on a machine that is kept busy
#: for a client of the cluster; not for its own processes, which would wait as long for a worker that was killed
PATIENT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": f"{SAFETY:.0f}s"}


@contextmanager
def dask_cluster(folder: Path, workers: int = 2) -> Iterator[Path]:
    """Give the scheduler file of a cluster all of whose workers are there; its processes end with the block.

    Where the file ``die`` is made in ``folder``, the next worker that is about to finish a Parquet file is killed.
    """
    from dask import config
    from distributed.utils import json_load_robust

    from truesource.grammar.support.parallel import connected

    file = folder / "scheduler.json"
    environment = {
        **os.environ,
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{SAFETY:.0f}s",  # a slow worker is not taken for dead
        "PYTHONPATH": os.pathsep.join([str(HERE / "dying_worker"), str(HERE), os.environ.get("PYTHONPATH", "")]),
        "DIE_ONCE": str(folder / "die"),
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
            wait_for(file, process)
        json_load_robust(file, timeout=SAFETY)  # Dask makes the file before it writes it
        if workers:
            with config.set({"distributed.comm.timeouts.connect": f"{SAFETY:.0f}s"}), connected(str(file)) as client:
                client.wait_for_workers(workers, timeout=SAFETY)
        yield file


def wait_for(file: Path, process: subprocess.Popen[Any]) -> None:
    """Until a file is there that a running process makes, however long it takes."""
    while not file.exists():
        assert process.poll() is None, f"the process has ended without {file}"
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(SAFETY)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
