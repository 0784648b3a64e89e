"""The number of threads of a process: all its cores, unless the user allows fewer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from truesource.grammar.support.errors import InputError

VARIABLE = "TRUESOURCE_THREADS"  #: environment variable with the maximum
_MOST: ContextVar[int | None] = ContextVar("threads", default=None)


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def named_threads() -> int | None:
    """Return the maximum that the running block or the environment sets; None: neither does.

    Raises:
        InputError: the variable is no integer above 0.
    """
    if (most := _MOST.get()) is not None:
        return most
    text = os.environ.get(VARIABLE, "")
    if text and not (text.isdecimal() and int(text) > 0):
        raise InputError(f"{VARIABLE} is {text!r}, expecting an integer above 0")
    return int(text) if text else None


def threads() -> int:
    """Return the number of threads for exact computations."""
    most = named_threads()
    return cores() if most is None else min(cores(), most)


@contextmanager
def at_most(most: int | None) -> Iterator[None]:
    """Limit the threads while the block runs; None: as outside.

    Raises:
        InputError: the limit is below 1.
    """
    if most is not None and most < 1:
        raise InputError(f"the number of threads is {most}, expecting 1 or more", code="bad-setting")
    token = _MOST.set(_MOST.get() if most is None else most)
    try:
        yield
    finally:
        _MOST.reset(token)
