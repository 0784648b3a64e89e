"""What a call says beside its results: how much of the log is shown, a log file, and tracebacks."""

from __future__ import annotations

import logging
import os
import shlex
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

from truesource.cli.interrupts import say
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import terminal

PRINTED = "truesource.printed"  #: logger of what the call prints itself, for the log file alone
_TIMES = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True)
class LogSettings:
    """What the options of the root say; the same options after the verb add to them."""

    quiet: bool = False
    verbose: bool = False
    traceback: bool = False
    file: Path | None = None

    @property
    def level(self) -> int:
        """Of messages that are shown."""
        return logging.WARNING if self.quiet else logging.DEBUG if self.verbose else logging.INFO


class _CallLog:
    """Of the running call."""

    settings = LogSettings()
    shown: logging.Handler | None = None  #: prints messages; None: somebody else has set up logging
    written: logging.FileHandler | None = None
    begun = 0.0


class _PrintedLog(logging.Handler):
    """Prints messages on standard error as it is now, each with its time; what is printed anyhow is left out."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
        self.addFilter(lambda record: record.name != PRINTED)

    def emit(self, record: logging.LogRecord) -> None:
        say(terminal(self.format(record)))


def begin_logs(settings: LogSettings) -> None:
    """Set up the log of a call, which forgets that of an earlier one.

    Raises:
        InputError: the log file cannot be opened.
    """
    _close_file()
    _CallLog.begun = time.monotonic()
    _set_up(settings)


def add_to_logs(*, quiet: bool = False, verbose: bool = False, show: bool = False, file: Path | None = None) -> None:
    """Change the log of the running call by options that stand after the verb.

    Args:
        quiet: show only warnings and errors.
        verbose: show debug messages too.
        show: show the traceback of every error.
        file: that the log is appended to; None: as before.

    Raises:
        InputError: the log file cannot be opened.
    """
    now = _CallLog.settings
    _set_up(
        replace(
            now,
            quiet=(now.quiet or quiet) and not verbose,
            verbose=(now.verbose or verbose) and not quiet,
            traceback=now.traceback or show,
            file=file or now.file,
        )
    )


def end_logs(code: object) -> None:
    """Write the end of the call to the log file, and close it."""
    if _CallLog.written is not None:
        to_log_file(f"ended with exit code {code or 0} after {time.monotonic() - _CallLog.begun:.1f} s")
    _close_file()
    _CallLog.settings = LogSettings()


def to_log_file(text: str) -> None:
    """Write what the call prints to the log file too, if there is one."""
    if _CallLog.written is not None:
        logging.getLogger(PRINTED).info("%s", text)


def traceback_wanted() -> bool:
    """Whether tracebacks are to be shown, also where the call failed before its options were read."""
    return _CallLog.settings.traceback or "--traceback" in sys.argv[1:] or bool(os.environ.get("TRUESOURCE_TRACEBACK"))


def show_traceback(error: BaseException) -> None:
    """Print the traceback of an error, and write it to the log file, if there is one."""
    text = _traceback(error)
    say(terminal(text))
    to_log_file(text)


def report_bug(error: BaseException) -> str:
    """Keep the traceback of an error that nobody expected, in the log file or else in a file of its own.

    Returns:
        One sentence: that it is a bug, and where the traceback is.
    """
    if traceback_wanted():
        show_traceback(error)
        where = "above"
    elif _CallLog.written is not None:
        to_log_file(_traceback(error))
        where = f"in {_CallLog.written.baseFilename}"
    else:
        where = _kept(error)
    said = " ".join(traceback.format_exception_only(error)[-1].split())
    said = said if len(said) <= 200 else f"{said[:199]}…"
    return f"this is a bug in truesource, not in your input ({said}); report it with the traceback, which is {where}"


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def _kept(error: BaseException) -> str:
    """Where the traceback is: in a file of its own; where none can be made, it is printed."""
    try:
        number, path = tempfile.mkstemp(prefix="truesource-bug-", suffix=".txt")
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"truesource {shlex.join(sys.argv[1:])}\n{_traceback(error)}\n")
    except OSError:
        show_traceback(error)
        return "above"
    return f"in {path}"


def _set_up(settings: LogSettings) -> None:
    _CallLog.settings = settings
    root, ours = logging.getLogger(), logging.getLogger("truesource")
    if not root.handlers or _CallLog.shown in root.handlers:
        _show(root)
    if settings.file is not None and (
        _CallLog.written is None or _CallLog.written.baseFilename != str(settings.file.absolute())
    ):
        _close_file()
        _CallLog.written = _opened(settings.file)
        root.addHandler(_CallLog.written)
        ours.setLevel(logging.DEBUG)
        to_log_file(f"truesource {shlex.join(sys.argv[1:])} (in {Path.cwd()}, process {os.getpid()})")
    if _CallLog.written is None:
        ours.setLevel(settings.level)


def _show(root: logging.Logger) -> None:
    """Print messages on standard error as it is now."""
    if _CallLog.shown is not None:
        root.removeHandler(_CallLog.shown)
    _CallLog.shown = _PrintedLog(_CallLog.settings.level)
    root.addHandler(_CallLog.shown)


def _opened(path: Path) -> logging.FileHandler:
    try:
        handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"cannot write the log file: {error.strerror or error}", path) from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", datefmt=_TIMES))
    return handler


def _close_file() -> None:
    if _CallLog.written is not None:
        logging.getLogger().removeHandler(_CallLog.written)
        _CallLog.written.close()
        _CallLog.written = None
