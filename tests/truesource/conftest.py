"""Fixtures of the tests of the command."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from command_line import Command, Outcome
from filelock import FileLock
from tiny_run import RunCopies

from truesource.cli.main import main
from truesource.grammar.support.atomic_files import write_text


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `truesource ARGS` in this process, through `main`."""

    # the other core has tests of its own
    monkeypatch.setattr("truesource.cli.run.warm_beside", lambda **_: nullcontext())

    def run(*args: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["truesource", *map(str, args)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            assert stop.code is None or isinstance(stop.code, int)
            code = stop.code or 0
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def quick_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs write a page without figures: for tests that do not look at it, and run often."""

    def write_page(folder: Path, _: object) -> Path:
        write_text(folder / "report.html", "a report")
        return folder / "report.html"

    monkeypatch.setattr("truesource.run.report_stage.write_page", write_page)


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> RunCopies:
    """Copies a folder with a finished run, which the first process of the session that asks for its name fills.

    Each module has a copy of its own in each process, which its tests may change as far as they change it back.
    """
    home = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        home = home.parent

    def copy(name: str, fill: Callable[[Path], object]) -> Path:
        whole = home / f"run-{name}"
        with FileLock(f"{whole}.lock"):
            if not whole.exists():
                whole.mkdir()
                try:
                    fill(whole)
                except BaseException:
                    shutil.rmtree(whole)
                    raise
        return Path(shutil.copytree(whole, tmp_path_factory.mktemp(name) / "copy", symlinks=True))

    return copy
