"""Requests of a call besides its work: tables as files, the size of figures, and who has the standard output.

`truesource.terminal.verb.Verb` declares the options and notes down what was given; `truesource.terminal.output` obeys.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.evaluation.show.table import ReportTable

STANDARD_OUTPUT = Path("-")  #: as the name of a file
TABLES = (".csv", ".parquet", ".tex", ".md")
LEAST, MOST = 1.0, 100.0  #: inches of a side of a figure
_ASKED: ContextVar[AskedOutputs] = ContextVar("asked")


@dataclass
class AskedOutputs:
    """The outputs that the options of one call ask for, and the tables that it has shown so far."""

    tables: tuple[Path, ...] = ()  #: of ``--table``
    json: Path | None = None
    figure_size: tuple[float, float] | None = None  #: inches
    shown: list[ReportTable] = field(default_factory=list)
    written: set[Path] = field(default_factory=set)  #: of the tables and ``json``

    def __post_init__(self) -> None:
        files = [*self.tables, *([] if self.json is None else [self.json])]
        if files.count(STANDARD_OUTPUT) > 1:
            raise InputError("only one of --json and --table can have the standard output; name a file for the other")
        if self.takes_standard_output and sys.stdout is None:
            raise InputError("the standard output is closed; name a file for --json or --table")
        for file in self.tables:
            if file != STANDARD_OUTPUT:
                require_ending(file, "--table", TABLES)

    @property
    def takes_standard_output(self) -> bool:
        """True if a table or JSON goes to the standard output; everything else then goes to standard error."""
        return STANDARD_OUTPUT in (*self.tables, self.json)

    @property
    def missing(self) -> list[Path]:
        """Files that were asked for and not written."""
        return [file for file in (*self.tables, self.json) if file is not None and file not in self.written]


def asked() -> AskedOutputs:
    """The outputs that the options of this call ask for; outside of a call, none."""
    return _ASKED.get(None) or AskedOutputs()


@contextmanager
def asking(given: AskedOutputs) -> Iterator[None]:
    """Make this the current request inside the block."""
    token = _ASKED.set(given)
    try:
        yield
    finally:
        _ASKED.reset(token)


def require_ending(file: Path, option: str, endings: tuple[str, ...]) -> None:
    """Refuse a file whose name does not say its format.

    Raises:
        InputError: its ending is none of these.
    """
    if file.suffix.lower() not in endings:
        raise InputError(
            f"{option} writes {', '.join(endings[:-1])} or {endings[-1]}; give the file such an ending", file
        )


def size_of(text: str | None) -> tuple[float, float] | None:
    """The inches of ``WIDTHxHEIGHT``.

    Raises:
        InputError: it is written otherwise, or a side is too small or too large.
    """
    if text is None:
        return None
    try:
        width, height = map(float, text.lower().split("x"))
    except ValueError:
        width = height = 0.0
    if not (LEAST <= width <= MOST and LEAST <= height <= MOST):
        raise InputError(
            f"--figure-size is WIDTHxHEIGHT in inches, such as 6x4, each from {LEAST:g} to {MOST:g}; got {text!r}"
        )
    return width, height
