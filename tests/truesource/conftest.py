"""Fixtures of the tests of the command."""

from __future__ import annotations

import sys

import pytest
from command_line import Command, Outcome

from truesource.cli.main import main


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `truesource ARGS` in this process, through `main`."""

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
