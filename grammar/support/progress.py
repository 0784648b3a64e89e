"""Progress of long work: rate and time left on a terminal, silent elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

from truesource.grammar.support.printable import one_line

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

_SHOWN: ContextVar[bool] = ContextVar("shown", default=False)  # whether a bar stands on the screen


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=_SHOWN.get() or not sys.stderr.isatty(),
    )


class Meter:
    """One running task; `advance` it, and `note` what a reader wants to see beside the bar."""

    def __init__(self, progress: Progress, description: str, total: float | None) -> None:
        self._progress = progress
        self._task = progress.add_task(one_line(description), total=total, note="")

    def advance(self, step: float = 1, note: str | None = None) -> None:
        """Move by ``step``; ``note`` replaces the text beside the bar."""
        if note is None:
            self._progress.update(self._task, advance=step)
        else:
            self._progress.update(self._task, advance=step, note=one_line(note))


@contextmanager
def meter(description: str, total: float | None = None) -> Iterator[Meter]:
    """Show one task while the block runs; what it consists of, metered within, stays silent."""
    with _bar() as progress:
        outer = _SHOWN.set(True)
        try:
            yield Meter(progress, description, total)
        finally:
            _SHOWN.reset(outer)


def track(items: Iterable[T], description: str, total: float | None = None) -> Iterator[T]:
    """Yield from ``items`` and show how far it is."""
    with meter(description, total) as task:
        for item in items:
            yield item
            task.advance()
