"""What all tests share: a deterministic hypothesis profile, a Ctrl-C that works in background jobs, and one thread.

The processes of a session compile each kernel once: the others wait for the first one, and load what it has cached.
They divide the rewriting of assertions, too.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from filelock import FileLock
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("suite")

signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a script start with it ignored
os.environ.setdefault("OMP_NUM_THREADS", "1")  # other numbers of threads round in other ways


#: line of a module whose tests are all long
ALL_LONG = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.long", re.MULTILINE)
#: modules that were loaded when objects were last set aside
LOADED = {"modules": 0}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import modules whose tests are all long, if long tests are left out."""
    if collection_path.suffix != ".py" or "not long" not in config.option.markexpr:
        return None
    return True if ALL_LONG.search(collection_path.read_text("utf-8")) else None


def pytest_configure(config: pytest.Config) -> None:
    """In each of several processes: a kernel has a lock, held while it is looked for in the cache, or compiled.

    Kernels call kernels, but never in a circle, so no two processes wait for each other; threads have the lock of
    numba first.
    """
    if not hasattr(config, "workerinput"):
        return
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    folder = config.rootpath / ".pytest_cache" / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    compile_alone = Dispatcher.compile

    def compile_once(kernel: Any, signature: Any) -> Any:
        if "_kernels" not in kernel.py_func.__module__:
            return compile_alone(kernel, signature)
        name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
        with global_compiler_lock, FileLock(folder / f"{name}.lock"):
            return compile_alone(kernel, signature)

    Dispatcher.compile = compile_once


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Each of several processes rewrites the assertions of other modules first, and then those that are left.

    In a new folder, rewriting takes longer than collecting. pytest caches what it rewrites, but has no public call for
    it; if its names change, each process rewrites all modules.
    """
    config = session.config
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    names = "_read_pyc", "_rewrite_test", "_write_pyc", "assertstate_key", "get_cache_dir", "PYC_TAIL"
    if worker is None or sys.dont_write_bytecode or any(not hasattr(rewrite, name) for name in names):
        return
    modules = [
        path for path in sorted(config.rootpath.glob("tests/**/test_*.py")) if not pytest_ignore_collect(path, config)
    ]
    first, step = int(worker["workerid"][2:]), worker["workercount"]
    others = [path for i, path in enumerate(modules) if i % step != first]
    for path in modules[first::step] + others[::-1]:
        cached = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if not cached.exists():
            cached.parent.mkdir(exist_ok=True)
            digest, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, digest, cached)


def pytest_runtest_setup() -> None:
    """What libraries and collected tests hold is no garbage: searched by every training, it took half a second each.

    A call of the command in this process has kept the signals, as if the process ended with it.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if len(sys.modules) >= LOADED["modules"] + 20:
        gc.collect()
        gc.freeze()
        LOADED["modules"] = len(sys.modules)


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Tiny networks are slower on many threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
