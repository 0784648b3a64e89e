"""The entry point: every failure ends in one sentence and an exit code. Heavy imports come after the signals."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from truesource.cli.failures import explain
from truesource.cli.interrupts import INTERRUPTED, STOPPED, Interrupts, say
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import message

FAILED = 2  #: exit code
BUG = 1  #: exit code
ExitCode = str | int | None  #: as `sys.exit` takes it


def main() -> None:
    """Run the command.

    Exit codes: 2 after bad input, where the machine ran out of something (disk, memory, open files, threads), or where
    the program that reads the output has ended; 130 after Ctrl-C, 143 after SIGTERM. Any other error is a bug: exit
    code 1, and a sentence that says where the traceback is.
    """
    with Interrupts() as interrupts:
        code: ExitCode = 0
        stopped: int | None = None
        try:
            _run()
        except SystemExit as stop:
            code = stop.code
            if isinstance(stop.__context__, BrokenPipeError):  # typer has ended the command for it, in silence
                code = _failed(stop.__context__)
            elif code == INTERRUPTED:
                stopped = interrupts.exit_code(stop.__context__ or stop)
        except BaseException as error:
            stopped = interrupts.exit_code(error)
            code = _failed(error) if stopped is None else stopped
        if stopped is not None:
            say(STOPPED)
        code = _flushed(stopped or code)
        if (logs := _logs()) is not None:
            logs.end_logs(code)
        sys.exit(code)


def _run() -> None:
    from truesource.cli.app import app
    from truesource.cli.claims import call_scope

    with call_scope(sys.argv[1:]):
        app(standalone_mode=True)


def _logs() -> Any:
    """The module of logs, unless the call failed before it was imported; then it may be impossible to import it."""
    return sys.modules.get("truesource.cli.logs")


def _failed(error: BaseException) -> int:
    """Say what has failed; the exit code."""
    logs, sentence = _logs(), str(error) if isinstance(error, InputError) else explain(error)
    if sentence is None:
        return _bug(error)
    if logs is not None and logs.traceback_wanted():
        logs.show_traceback(error)
    _say(sentence)
    return FAILED


def _bug(error: BaseException) -> int:
    """Say that this is no fault of the input; the exit code."""
    from truesource.cli.logs import report_bug

    _say(report_bug(error))
    return BUG


def _say(sentence: str) -> None:
    text = f"truesource: {message(sentence)}"
    say(text)
    if (logs := _logs()) is not None:
        logs.to_log_file(text)


def _flushed(code: ExitCode) -> ExitCode:
    """Write out what standard output still holds, which may fail; the exit code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop_output()
        return code or _failed(error)
    except (ValueError, AttributeError):  # it is closed, or there is none
        return code
    return code


def _drop_output() -> None:
    """Let what cannot be written go, so that Python does not fail over it once more at its end."""
    with suppress(OSError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
