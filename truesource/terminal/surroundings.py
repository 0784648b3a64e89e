"""Surroundings of a call: standard streams that are closed or not in UTF-8, and environment variables."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from truesource.grammar.support.errors import InputError


def prepare_streams() -> None:
    """Make the standard streams such that anything can be printed, whatever the locale is and the caller has closed.

    A descriptor that is closed becomes ``/dev/null``: else the next file that is opened takes its number, and what
    libraries print goes into that file. Messages without standard error are lost. ASCII becomes UTF-8, as `typer` has
    it; other encodings escape the characters that they lack.
    """
    for number in range(3):
        with suppress(OSError):
            _fill(number)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        _let_print(stream)


def _fill(number: int) -> None:
    """Open ``/dev/null`` as a descriptor, if that is closed."""
    try:
        os.fstat(number)
    except OSError:
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
        os.set_inheritable(number, True)


def _let_print(stream: TextIO | None) -> None:
    change = getattr(stream, "reconfigure", None)
    if stream is None or change is None:
        return
    ascii_only = (stream.encoding or "").lower().replace("_", "-") in ("ascii", "us-ascii", "ansi-x3.4-1968", "646")
    with suppress(OSError, ValueError):
        change(encoding="utf-8" if ascii_only else None, errors="backslashreplace")


class _Aside:
    """Descriptor of the standard output, kept for the results of this process; None: it is where it was."""

    descriptor: int | None = None


def keep_standard_output() -> None:
    """Keep the standard output for `write_result`; what else is written there goes to standard error from now on.

    So nothing that custom code prints gets among the results: from C, from threads, or when the process ends.
    """
    try:
        if _Aside.descriptor is not None or sys.stdout.fileno() != 1:  # replaced, as in tests
            return
        sys.stdout.flush()
        _Aside.descriptor = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError, AttributeError):
        return


def write_result(content: bytes) -> bool:
    """Write to the standard output that `keep_standard_output` has kept; False: it has kept none.

    Raises:
        OSError: the disk is full, or the reader has gone.
    """
    if _Aside.descriptor is None:
        return False
    with os.fdopen(_Aside.descriptor, "wb", closefd=False) as stream:
        stream.write(content)
    return True


def require_environment() -> None:
    """Stop where variables of the environment keep the numerical kernels from being compiled.

    Raises:
        InputError: ``NUMBA_NUM_THREADS`` is less than 1, or ``NUMBA_DISABLE_JIT`` is set.
    """
    threads = _number("NUMBA_NUM_THREADS")
    if threads is not None and threads < 1:
        raise InputError(f"the environment variable NUMBA_NUM_THREADS is {threads}; set it to 1 or more, or unset it")
    if _number("NUMBA_DISABLE_JIT"):
        raise InputError("the environment variable NUMBA_DISABLE_JIT is set, but kernels must be compiled; unset it")


def _number(variable: str) -> int | None:
    """The value of a variable as numba reads it; None: it is unset, or not a number, and numba ignores it."""
    try:
        return int(os.environ.get(variable, ""))
    except ValueError:
        return None
