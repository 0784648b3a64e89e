"""Messages of a call other than its results: level of the log, log file, and tracebacks."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import terminal
from truesource.terminal.signal_watch import SignalWatch

INTERRUPTED = 130  #: exit code after Ctrl-C, also the code of `typer` after any `KeyboardInterrupt`
STOPPED = "truesource: stopped; finished work is kept, run the same command again to resume"
_BEFORE: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}  #: defaults
PRINTED = "truesource.printed"  #: logger of the output of the call, only for the log file
_TIMES = "%Y-%m-%d %H:%M:%S"


def say(sentence: str) -> None:
    """Write a line to stderr, if it is open; needs almost no memory, imports or files."""
    try:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # standard error is closed
        return


class Interrupts:
    """While the block runs, the first Ctrl-C or SIGTERM raises `KeyboardInterrupt` and the second ends the process.

    The exception carries the number of the signal. Signals that are ignored or handled elsewhere stay so.
    The process also ends if Python cannot raise the exception, such as in a destructor during an import,
    or cannot react for long (`truesource.terminal.signal_watch`), or if the signal arrives after the block,
    while exit handlers run; nothing is printed then.
    """

    def __init__(self) -> None:
        self.count = 0
        self._code: int | None = None  #: exit code, once a signal has come or the block has ended
        self._ended, self._process, self._hook = False, os.getpid(), sys.unraisablehook

    def __enter__(self) -> Interrupts:
        """Install the signal handlers."""
        if threading.current_thread() is threading.main_thread():
            for number, default in _BEFORE.items():
                before = signal.getsignal(number)
                if before is default or isinstance(getattr(before, "__self__", None), Interrupts):
                    signal.signal(number, self._on_signal)
            sys.unraisablehook = self._on_unraisable
            SignalWatch(self._on_signal, lambda: self.count > 0).begin(self._on_deaf)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Keep the signal handlers until the process ends."""
        code = error.code if isinstance(error, SystemExit) else None
        self._code, self._ended = (code if isinstance(code, int) else int(code is not None)), True
        sys.unraisablehook = self._hook

    def exit_code(self, error: BaseException) -> int | None:
        """Return 128 plus the number of the signal that stopped the call; None if no signal did.

        Args:
            error: the exception that ended the call; an interrupted import or library may raise anything.
        """
        link: BaseException | None = error
        while self._code is None and link is not None:
            if isinstance(link, KeyboardInterrupt):  # raised by another handler
                self._code = 128 + (link.args[0] if link.args else signal.SIGINT)
            link = link.__cause__
        return self._code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a fork, such as a worker process: use the default handler
            signal.signal(number, _BEFORE[number])
            signal.raise_signal(number)
            return
        self.count += 1
        if self._code is None:
            self._code = 128 + number
        if self._ended or self.count > 1:
            self._leave()
        raise KeyboardInterrupt(number)

    def _on_deaf(self, number: int) -> None:
        """Leave if the main thread does not react to a signal, such as in a kernel on one long sentence."""
        if self._code is None:
            self._code = 128 + number
        self._leave()

    def _on_unraisable(self, unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self._leave()
        self._hook(unraisable)

    def _leave(self) -> None:
        if not self._ended:
            say(STOPPED)
        os._exit(INTERRUPTED if self._code is None else self._code)  # the next call cleans up, as after a kill


@dataclass(frozen=True)
class LogSettings:
    """The log settings from options before the verb; the same options after the verb add to them."""

    quiet: bool = False
    verbose: bool = False
    traceback: bool = False
    file: Path | None = None

    @property
    def level(self) -> int:
        """Minimum level of printed messages."""
        return logging.WARNING if self.quiet else logging.DEBUG if self.verbose else logging.INFO


class _CallLog:
    """Log of the running call."""

    settings = LogSettings()
    printer: logging.Handler | None = None  #: prints messages; None: other code has set up logging
    file: _LogFile | None = None
    begun = 0.0


class _PrintedLog(logging.Handler):
    """Handler that prints messages with their times on the current standard error, except output of the call."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
        self.addFilter(lambda record: record.name != PRINTED)

    def emit(self, record: logging.LogRecord) -> None:
        say(terminal(self.format(record)))


class _LogFile(logging.FileHandler):
    """The log file; if writing fails, as on a full disk, one line reports it, and the call continues."""

    failure: OSError | None = None  #: error of the first line that could not be written
    begun = False  #: True if the first line of the call is written

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless an earlier one failed."""
        if self.failure is None:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (of the library)
        """Stop writing, and report it once."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self.failure = error
        if self.begun:
            say(f"truesource: the log file cannot be written any more: {error.strerror or error} ({self.baseFilename})")

    def close(self) -> None:
        """Close the file; buffered lines may be lost."""
        try:
            super().close()
        except OSError as error:
            self.failure = self.failure or error


def begin_logs(settings: LogSettings) -> None:
    """Set up the log of a call, and close the log of an earlier call.

    Raises:
        InputError: the log file cannot be opened.
    """
    _close_file()
    _CallLog.begun = time.monotonic()
    _set_up(settings)


def add_to_logs(*, quiet: bool = False, verbose: bool = False, show: bool = False, file: Path | None = None) -> None:
    """Change the log of the running call by options after the verb.

    Args:
        quiet: show only warnings and errors.
        verbose: show debug messages too.
        show: show the traceback of every error.
        file: file to append the log to; None: no change.

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
    if _CallLog.file is not None:
        to_log_file(f"ended with exit code {code or 0} after {time.monotonic() - _CallLog.begun:.1f} s")
    _close_file()
    _CallLog.settings = LogSettings()


def to_log_file(text: str) -> None:
    """Copy printed output to the log file, if there is one."""
    if _CallLog.file is not None:
        logging.getLogger(PRINTED).info("%s", text)


def traceback_wanted() -> bool:
    """Return True if tracebacks are requested, also if the call failed before its options were read."""
    return _CallLog.settings.traceback or "--traceback" in sys.argv[1:] or bool(os.environ.get("TRUESOURCE_TRACEBACK"))


def show_traceback(error: BaseException) -> None:
    """Print the traceback of an error, and write it to the log file, if there is one."""
    text = _traceback(error)
    say(terminal(text))
    to_log_file(text)


def report_bug(error: BaseException) -> str:
    """Save the traceback of an unexpected error in the log file or else in a new file.

    Returns:
        One sentence that says that it is a bug, and where the traceback is.
    """
    if traceback_wanted():
        show_traceback(error)
        where = "above"
    elif _CallLog.file is not None:
        to_log_file(_traceback(error))
        where = f"in {_CallLog.file.baseFilename}"
    else:
        where = _save_traceback(error)
    summary = " ".join(traceback.format_exception_only(error)[-1].split())
    summary = summary if len(summary) <= 200 else f"{summary[:199]}…"
    return f"this is a bug in truesource, not in your input ({summary}); report it with the traceback, which is {where}"


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def _save_traceback(error: BaseException) -> str:
    """Save the traceback to a new file, or print it if that fails; return its place."""
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
    if not root.handlers or _CallLog.printer in root.handlers:
        _show(root)
    if settings.file is not None and (
        _CallLog.file is None or _CallLog.file.baseFilename != str(settings.file.absolute())
    ):
        _close_file()
        file = _CallLog.file = _opened(settings.file)
        root.addHandler(file)
        ours.setLevel(logging.DEBUG)
        to_log_file(f"truesource {shlex.join(sys.argv[1:])} (in {Path.cwd()}, process {os.getpid()})")
        file.begun = True
        if file.failure is not None:
            _close_file()
            raise _unwritable(settings.file, file.failure)
    if _CallLog.file is None:
        ours.setLevel(settings.level)


def _show(root: logging.Logger) -> None:
    """Print messages on the current standard error."""
    if _CallLog.printer is not None:
        root.removeHandler(_CallLog.printer)
    _CallLog.printer = _PrintedLog(_CallLog.settings.level)
    root.addHandler(_CallLog.printer)


def _opened(path: Path) -> _LogFile:
    try:
        handler = _LogFile(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise _unwritable(path, error) from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", datefmt=_TIMES))
    return handler


def _unwritable(path: Path, error: OSError) -> InputError:
    reason = error.strerror or error
    return InputError(f"cannot write the log file: {reason}; choose another with --log-file", path, code="unwritable")


def _close_file() -> None:
    if _CallLog.file is not None:
        logging.getLogger().removeHandler(_CallLog.file)
        _CallLog.file.close()
        _CallLog.file = None
