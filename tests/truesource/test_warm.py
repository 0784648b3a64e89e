"""Kernels are compiled beside a run, by a process that ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from truesource.cli import warm
from truesource.grammar.estimate.split_merge import _kernels

BEGIN = "import sys\nfrom truesource.cli.warm import warm_beside\nwith warm_beside():\n    print('begun', flush=True)\n"


def begun(tmp_path: Path, body: str) -> subprocess.Popen[str]:
    """A process that compiles beside ``body``, after it has begun; its cache is empty, its temporary files are here."""
    (tmp_path / "tmp").mkdir()
    places = {"TMPDIR": str(tmp_path / "tmp"), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", BEGIN + f"    {body}"]
    process = subprocess.Popen(command, env=os.environ | places, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def folders(tmp_path: Path) -> list[Path]:
    """What stands in the folder of temporary files."""
    return [path for path in (tmp_path / "tmp").iterdir() if path.is_dir()]


def wait_until(tmp_path: Path, there: bool) -> None:
    """Wait until the folder of the second process is there, or is gone, which is the last thing that it does."""
    for _ in range(600):
        if bool(folders(tmp_path)) == there:
            return
        time.sleep(0.1)
    pytest.fail(f"the folder is {'not ' if there else 'still '}there")


@pytest.mark.long
def test_the_process_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    process = begun(tmp_path, "import time; time.sleep(100)")
    wait_until(tmp_path, there=True)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_until(tmp_path, there=False)


@pytest.mark.long
def test_the_process_ends_with_the_body(tmp_path: Path) -> None:
    """After the body the parent goes on; nothing is compiled beside what comes then."""
    process = begun(tmp_path, "import time; time.sleep(4)")
    wait_until(tmp_path, there=True)
    process.communicate()
    assert process.returncode == 0
    wait_until(tmp_path, there=False)


def test_nothing_begins_where_kernels_are_compiled_or_there_is_one_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "_stamp", lambda: tmp_path / "stamp")
    monkeypatch.setattr(warm.subprocess, "Popen", lambda *_, **__: pytest.fail("a process began"))
    monkeypatch.setenv("TRUESOURCE_THREADS", "1")
    with warm.warm_beside():
        pass
    monkeypatch.delenv("TRUESOURCE_THREADS")
    (tmp_path / "stamp").touch()
    with warm.warm_beside():
        pass


def test_induction_comes_first_where_a_run_induces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name in ("_compile_for_induction", "_compile_for_runs"):
        monkeypatch.setattr(warm, name, lambda *_, name=name: calls.append(name))
    monkeypatch.setattr(warm, "_stamp", lambda: tmp_path / "stamp")
    monkeypatch.setattr(warm, "Thread", lambda **_: SimpleNamespace(start=lambda: None))
    monkeypatch.setattr(os, "nice", lambda _: 0)
    for arguments in ([], [warm.INDUCES]):
        monkeypatch.setattr(sys, "argv", ["warm", *arguments])
        warm._main()
    assert calls == ["_compile_for_runs", "_compile_for_induction", "_compile_for_runs"]


@pytest.mark.long
def test_what_compiles_for_induction_calls_both_precisions_in_all_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    called: set[tuple[str, str]] = set()

    def noted(name: str) -> Callable[..., Any]:
        kernel = getattr(_kernels, name)

        def call(*arguments: Any) -> Any:
            called.add((name, str(arguments[3].dtype)))
            return kernel(*arguments)

        return call

    for name in ("inside", "outside"):
        monkeypatch.setattr(_kernels, name, noted(name))
    warm._compile_for_induction()
    assert called == {(name, dtype) for name in ("inside", "outside") for dtype in ("float32", "float64")}


@pytest.mark.slow
def test_after_it_a_run_compiles_nothing(tmp_path: Path) -> None:
    code = "from truesource.cli.main import main; import sys; sys.argv[1:] = {}; main()"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def kernels(*arguments: str) -> set[Path]:
        subprocess.run([sys.executable, "-c", code.format(list(arguments))], cwd=tmp_path, env=environment, check=True)
        return {path for path in (tmp_path / "cache").rglob("*") if path.is_file()}

    compiled = kernels("run", "--warm")
    assert len(compiled) > 100
    small = ("treebank.sentences=500", "corpus.splits={train: 200, dev: 20, test: 20, eval: 20}", "models=[]")
    assert kernels("run", "demo", *(f"--set={setting}" for setting in small)) == compiled
