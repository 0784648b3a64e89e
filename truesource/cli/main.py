"""The entry point: every failure ends in one sentence and an exit code. Heavy imports come after the signals."""

from __future__ import annotations

import encodings.ascii
import encodings.cp437
import encodings.idna
import encodings.latin_1
import encodings.utf_8
import encodings.utf_8_sig  # noqa: F401 - when memory or files run out, it could not be imported any more
import errno
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import message
from truesource.terminal.logs import INTERRUPTED, STOPPED, Interrupts, say
from truesource.terminal.surroundings import prepare_streams, require_environment

AGAIN = "then run the same command again"
_MEMORY = "not enough memory; use fewer --workers, a smaller input or smaller batches, or a machine with more memory"
_THREADS = f"no more threads or processes can be started; raise the limit (ulimit -u) or use fewer --workers, {AGAIN}"
_FILES = f"too many open files; raise the limit (ulimit -n) or use fewer --workers, {AGAIN}"

#: what the machine ran out of, by error number; inside a chain of errors, only these count as its cause
_SHORT_OF = {
    errno.ENOSPC: f"no space left on the disk; free some space, {AGAIN}",
    errno.EDQUOT: f"the disk quota is used up; free some space, {AGAIN}",
    errno.EFBIG: f"a file would be larger than the limit; raise the limit (ulimit -f), {AGAIN}",
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: _THREADS,
    errno.EROFS: "the file system is read-only; choose another place",
    errno.EIO: f"the disk reports an error; check it, {AGAIN}",
}
_REFUSED = {
    errno.EACCES: "permission denied; change the permissions or choose another place",
    errno.EPERM: "operation not permitted; change the permissions or choose another place",
    errno.EPIPE: "the program that read the output has ended, so the rest of it is missing; run the command again",
}
#: texts of the same failures in errors of libraries
_TEXTS = {
    **{os.strerror(number).lower(): sentence for number, sentence in _SHORT_OF.items()},
    "can't start new thread": _THREADS,
    "out of memory": _MEMORY,
    "can't allocate memory": _MEMORY,
    "std::bad_alloc": _MEMORY,
    "unable to allocate": _MEMORY,
    "failed to map segment": _MEMORY,
    "cannot enable executable": _MEMORY,
    "error return without exception set": _MEMORY,  # Python 3.11, if it has no memory for a call
}
FAILED = 2  #: exit code
BUG = 1  #: exit code


def explain(error: BaseException) -> str | None:
    """Return a sentence (what the machine refused, what to do, the path); None for errors of another kind."""
    for number, cause in enumerate(_causes(error)):
        sentence = _sentence(cause, top=number == 0)
        if sentence is not None:
            return sentence
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that it was raised from, or raised while handling."""
    seen: set[int] = set()
    left: BaseException | None = error
    while left is not None and id(left) not in seen:
        seen.add(id(left))
        yield left
        left = left.__cause__ or (None if left.__suppress_context__ else left.__context__)


def _sentence(error: BaseException, *, top: bool) -> str | None:
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, OSError):
        sentence = _SHORT_OF.get(error.errno or 0) or (_REFUSED.get(error.errno or 0) if top else None)
        if sentence is None and top:
            sentence = error.strerror or str(error) or type(error).__name__
        return None if sentence is None else sentence + _place(error)
    if isinstance(error, Exception):
        text = str(error).lower()
        return next((sentence for mark, sentence in _TEXTS.items() if mark in text), None)
    return None


def _place(error: OSError) -> str:
    names = [str(name) for name in (error.filename, error.filename2) if isinstance(name, str | os.PathLike)]
    return f" ({' -> '.join(names)})" if names else ""


ExitCode = str | int | None  #: type of the argument of `sys.exit`


def main() -> None:
    """Run the command.

    Exit codes: 2 after bad input, if the machine ran out of something (disk, memory, open files, threads), or if
    the program that reads the output has ended; 130 after Ctrl-C, 143 after SIGTERM. Any other error is a bug: exit
    code 1, and a sentence that says where the traceback is.
    """
    prepare_streams()
    with Interrupts() as interrupts:
        code: ExitCode = 0
        stopped: int | None = None
        try:
            _run()
        except SystemExit as stop:
            code = stop.code
            if isinstance(stop.__context__, BrokenPipeError):  # typer has ended the command silently
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
    # numpy reads it when it is imported: its matrices are small here, and on a busy machine threads wait for each other
    os.environ.setdefault("OPENBLAS_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    require_environment()
    from truesource.cli.app import app
    from truesource.terminal.output import call_scope

    with call_scope(sys.argv[1:]):
        app(standalone_mode=True)


def _logs() -> Any:
    """Return the module of logs; None if the call failed before its import, as it may then be impossible."""
    return sys.modules.get("truesource.terminal.logs")


def _failed(error: BaseException) -> int:
    """Print what failed, and return the exit code."""
    logs, sentence = _logs(), str(error) if isinstance(error, InputError) else explain(error)
    if sentence is None:
        return _bug(error)
    if logs is not None and logs.traceback_wanted():
        logs.show_traceback(error)
    _say(sentence)
    return FAILED


def _bug(error: BaseException) -> int:
    """Report a fault of truesource, not of the input, and return the exit code."""
    from truesource.terminal.logs import report_bug

    _say(report_bug(error))
    return BUG


def _say(sentence: str) -> None:
    text = f"truesource: {message(sentence)}"
    say(text)
    if (logs := _logs()) is not None:
        logs.to_log_file(text)


def _flushed(code: ExitCode) -> ExitCode:
    """Flush standard output, which may fail; return the exit code."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _drop_output()
        return code or _failed(error)
    except (ValueError, AttributeError):  # standard output is closed or missing
        return code
    return code


def _drop_output() -> None:
    """Discard output that cannot be written, so that Python does not fail again at exit."""
    with suppress(OSError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
