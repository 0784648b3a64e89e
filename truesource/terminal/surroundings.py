"""Surroundings of a call: standard streams that are closed or not in UTF-8, and environment variables."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from truesource.grammar.support.errors import InputError


def prepare_streams() -> None:
    """Make the standard streams print any text, whatever the locale, even if the caller has closed them.

    A closed descriptor becomes ``/dev/null``: otherwise the next opened file takes its number, and output of
    libraries goes into that file. Without standard error, messages are lost. ASCII becomes UTF-8, as `typer` does
    too; other encodings escape missing characters.
    """
    for number in range(3):
        with suppress(OSError):
            _fill(number)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        _let_print(stream)


def _fill(number: int) -> None:
    """Open ``/dev/null`` as a descriptor, if it is closed."""
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


class _ResultStream:
    """Descriptor of the standard output, saved for the results of this process; None if it is not redirected."""

    descriptor: int | None = None


def keep_standard_output() -> None:
    """Reserve the standard output for `write_result`; redirect all other output to standard error.

    So output of custom code never mixes with the results: from C, from threads, or when the process ends.
    """
    try:
        if _ResultStream.descriptor is not None or sys.stdout.fileno() != 1:  # replaced, as in tests
            return
        sys.stdout.flush()
        _ResultStream.descriptor = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError, AttributeError):
        return


def write_result(content: bytes) -> bool:
    """Write to the standard output reserved by `keep_standard_output`; return False if it is not reserved.

    Raises:
        OSError: the disk is full, or the reader has gone.
    """
    if _ResultStream.descriptor is None:
        return False
    with os.fdopen(_ResultStream.descriptor, "wb", closefd=False) as stream:
        stream.write(content)
    return True


def require_environment() -> None:
    """Refuse environment variables that prevent the compilation of kernels.

    Raises:
        InputError: ``NUMBA_NUM_THREADS`` is less than 1, or ``NUMBA_DISABLE_JIT`` is set.
    """
    threads = _number("NUMBA_NUM_THREADS")
    if threads is not None and threads < 1:
        raise InputError(f"the environment variable NUMBA_NUM_THREADS is {threads}; set it to 1 or more, or unset it")
    if _number("NUMBA_DISABLE_JIT"):
        raise InputError("the environment variable NUMBA_DISABLE_JIT is set, but kernels must be compiled; unset it")


def _number(variable: str) -> int | None:
    """Return a variable as numba reads it; None if numba ignores it: it is unset or not a number."""
    try:
        return int(os.environ.get(variable, ""))
    except ValueError:
        return None
