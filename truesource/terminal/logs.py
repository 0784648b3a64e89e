"""Messages of a call beside its results: how much of the log is shown, a log file, and tracebacks."""

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

INTERRUPTED = 130  #: exit code after Ctrl-C, and of `typer` after any `KeyboardInterrupt`
STOPPED = "truesource: stopped; what was finished is kept, run the same command again to go on"
_BEFORE: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}  #: of signals
PRINTED = "truesource.printed"  #: logger of what the call prints itself, for the log file alone
_TIMES = "%Y-%m-%d %H:%M:%S"


def say(sentence: str) -> None:
    """Write a line to stderr, as far as there is one; needs no memory of imports, files or codecs to speak of."""
    try:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # nobody listens any more
        return


class Interrupts:
    """While the block runs, the first Ctrl-C or SIGTERM raises `KeyboardInterrupt` and the second ends the process.

    The exception carries the number of the signal. Where a signal is ignored or handled by somebody else, it stays so.
    One that arrives where Python cannot raise it, such as in a destructor during an import, ends the process too, as
    does one that Python cannot heed for long (`truesource.terminal.signal_watch`). So
    does one after the block, where exit handlers run, in silence: all has been said by then.
    """

    def __init__(self) -> None:
        self.count = 0
        self._code: int | None = None  #: exit code, once a signal has come or the block has ended
        self._ended, self._process, self._hook = False, os.getpid(), sys.unraisablehook

    def __enter__(self) -> Interrupts:
        """Take the signals over."""
        if threading.current_thread() is threading.main_thread():
            for number, default in _BEFORE.items():
                before = signal.getsignal(number)
                if before is default or isinstance(getattr(before, "__self__", None), Interrupts):
                    signal.signal(number, self._on_signal)
            sys.unraisablehook = self._on_unraisable
            SignalWatch(self._on_signal, lambda: self.count > 0).begin(self._on_deaf)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Keep the signals until the process ends."""
        code = error.code if isinstance(error, SystemExit) else None
        self._code, self._ended = (code if isinstance(code, int) else int(code is not None)), True
        sys.unraisablehook = self._hook

    def exit_code(self, error: BaseException) -> int | None:
        """128 and the number of the signal that stopped the call; None: none did.

        Args:
            error: that ended the call. An interrupted import or library may raise anything.
        """
        link: BaseException | None = error
        while self._code is None and link is not None:
            if isinstance(link, KeyboardInterrupt):  # of somebody else's handler
                self._code = 128 + (link.args[0] if link.args else signal.SIGINT)
            link = link.__cause__
        return self._code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a fork, such as a worker process: as if nobody handled the signal
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
        """Leave where the main thread does not heed a signal, as in a kernel that works on one long sentence."""
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
        os._exit(INTERRUPTED if self._code is None else self._code)  # the next call clears up, as after a kill


@dataclass(frozen=True)
class LogSettings:
    """The settings of the log by the options of the root; the same options after the verb add to them."""

    quiet: bool = False
    verbose: bool = False
    traceback: bool = False
    file: Path | None = None

    @property
    def level(self) -> int:
        """Level of the messages that are shown."""
        return logging.WARNING if self.quiet else logging.DEBUG if self.verbose else logging.INFO


class _CallLog:
    """Log of the running call."""

    settings = LogSettings()
    shown: logging.Handler | None = None  #: prints messages; None: somebody else has set up logging
    written: _LogFile | None = None
    begun = 0.0


class _PrintedLog(logging.Handler):
    """Prints messages on standard error as it is now, each with its time; what is printed anyhow is left out."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
        self.addFilter(lambda record: record.name != PRINTED)

    def emit(self, record: logging.LogRecord) -> None:
        say(terminal(self.format(record)))


class _LogFile(logging.FileHandler):
    """The log file; if it can no longer be written, as on a full disk, one line says so, and the call continues."""

    failure: OSError | None = None  #: of the first line that could not be written
    begun = False  #: whether the first line, which the call begins with, is written

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless one before it failed."""
        if self.failure is None:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (of the library)
        """Stop writing, and say so once."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self.failure = error
        if self.begun:
            say(f"truesource: the log file cannot be written any more: {error.strerror or error} ({self.baseFilename})")

    def close(self) -> None:
        """Close the file; what it still held may be lost."""
        try:
            super().close()
        except OSError as error:
            self.failure = self.failure or error


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
    """True if tracebacks are to be shown, also where the call failed before its options were read."""
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
    """Return where the traceback is: in a file of its own; where none can be made, it is printed."""
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
        file = _CallLog.written = _opened(settings.file)
        root.addHandler(file)
        ours.setLevel(logging.DEBUG)
        to_log_file(f"truesource {shlex.join(sys.argv[1:])} (in {Path.cwd()}, process {os.getpid()})")
        file.begun = True
        if file.failure is not None:
            _close_file()
            raise _unwritable(settings.file, file.failure)
    if _CallLog.written is None:
        ours.setLevel(settings.level)


def _show(root: logging.Logger) -> None:
    """Print messages on standard error as it is now."""
    if _CallLog.shown is not None:
        root.removeHandler(_CallLog.shown)
    _CallLog.shown = _PrintedLog(_CallLog.settings.level)
    root.addHandler(_CallLog.shown)


def _opened(path: Path) -> _LogFile:
    try:
        handler = _LogFile(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise _unwritable(path, error) from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", datefmt=_TIMES))
    return handler


def _unwritable(path: Path, error: OSError) -> InputError:
    reason = error.strerror or error
    return InputError(f"cannot write the log file: {reason}; name another with --log-file", path, code="unwritable")


def _close_file() -> None:
    if _CallLog.written is not None:
        logging.getLogger().removeHandler(_CallLog.written)
        _CallLog.written.close()
        _CallLog.written = None
