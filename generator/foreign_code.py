"""Errors of user code, as one sentence with the last line of its traceback."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, Literal

from truesource.grammar.support.errors import InputError

#: prefix of our modules; models of all others are checked, see `truesource.generator.abilities`
_OURS = "truesource."
Handling = Literal["ignore", "warn", "raise", "call", "print", "log"]  #: what numpy does about a kind of errors
_KINDS: tuple[Literal["divide", "over", "under", "invalid"], ...] = ("divide", "over", "under", "invalid")


class _Messages:
    """Standard error in place of the standard output of user code; it cannot be closed."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)

    def close(self) -> None:
        """Do nothing: errors are printed later."""


@contextmanager
def contained(numpy_errors: dict[str, Handling] | None = None) -> Iterator[None]:
    """Undo what user code changes for the whole process: streams, working folder, numpy's handling of errors.

    Its output goes to standard error, since ``--json -`` may use the standard output.

    Args:
        numpy_errors: for a generator, the same mapping at each of its steps: its changes of numpy's handling of
            errors, restored at the next step.
    """
    import numpy as np

    changes = {} if numpy_errors is None else numpy_errors

    stderr, folder = sys.stderr, None
    with suppress(OSError):  # the folder has been removed
        folder = Path.cwd()
    ours = np.geterr()
    np.seterr(**changes)
    before = np.geterr()
    try:
        with redirect_stdout(_Messages()):
            yield
    finally:
        after = np.geterr()
        changes.update({kind: after[kind] for kind in _KINDS if after[kind] != before[kind]})
        np.seterr(**ours)
        sys.stderr = stderr
        if folder is not None:
            _return_to(folder)


def _return_to(folder: Path) -> None:
    with suppress(OSError):
        if Path.cwd() == folder:
            return
    with suppress(OSError):
        os.chdir(folder)


@contextmanager
def code_errors(
    what: str,
    source: Path | None = None,
    code: str = "code-failed",
    numpy_errors: dict[str, Handling] | None = None,
) -> Iterator[None]:
    """Turn an error of user code inside the block into one sentence, with the last line of its traceback.

    Changes for the whole process are undone, see `contained`. An interrupt (Ctrl-C) passes.

    Args:
        what: the code that runs, such as ``gru.py:GRU``.
        source: its file; None: unknown.
        code: code of the error.
        numpy_errors: see `contained`.

    Raises:
        InputError: something was raised; an `InputError` keeps its sentence and its code.
    """
    try:
        with contained(numpy_errors):
            yield
    except InputError as error:
        if error.path is not None or source is None:
            raise
        raise InputError(error.reason, source, line_of(error, source), code=error.code) from error
    except (MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if isinstance(error, GeneratorExit) and not _comes_from(error, source):  # our own generator is closed
            raise
        line = None if source is None else line_of(error, source)
        raise InputError(f"{what} raises {said(error)}", source, line, code=code) from error


def _comes_from(error: BaseException, source: Path | None) -> bool:
    """Return True if code that is not part of truesource raised an exception."""
    if source is not None and line_of(error, source) is not None:
        return True
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and not str(step.tb_frame.f_globals.get("__name__", "")).startswith(_OURS)


def line_of(error: BaseException, source: Path) -> int | None:
    """Return the line of a file that raised an exception; None: the file is not in its traceback."""
    same = {str(source), str(source.resolve())}
    if isinstance(error, SyntaxError) and error.filename in same:
        return error.lineno
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename in same:
            line = step.tb_lineno
        step = step.tb_next
    return line


def said(error: BaseException) -> str:
    """Return the type and message of an exception, on one line of at most 200 characters."""
    try:
        text = " ".join(str(error).split())
    except BaseException:  # its class is user code, too
        text = ""
    result = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return result if len(result) <= 200 else f"{result[:199]}…"


def is_foreign(thing: object) -> bool:
    """Return True if an object is of a class that is not part of truesource."""
    return not type(thing).__module__.startswith(_OURS)


def file_of(thing: object) -> Path | None:
    """Return the file that defines a function, or the class of an object; None: it has none."""
    for candidate in (inspect.unwrap(thing) if callable(thing) else thing, type(thing)):
        try:
            result = inspect.getsourcefile(candidate)  # type: ignore[arg-type] # refused below
        except (TypeError, OSError):
            continue
        if result is not None and Path(result).is_file():
            return Path(result)
    return None
