"""Output requests of a call: tables as files, size of figures, and what goes to the standard output.

`truesource.terminal.verb.Verb` declares the options and reads them; `truesource.terminal.output` writes the files.
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

STANDARD_OUTPUT = Path("-")  #: file name that means the standard output
TABLES = (".csv", ".parquet", ".tex", ".md")
LEAST, MOST = 1.0, 100.0  #: limits for width and height of a figure, inches
_REQUEST: ContextVar[OutputRequest] = ContextVar("request")


@dataclass
class OutputRequest:
    """The outputs that one call requests, and the tables that it has printed so far."""

    tables: tuple[Path, ...] = ()  #: files of ``--table``
    json: Path | None = None
    figure_size: tuple[float, float] | None = None  #: inches
    shown_tables: list[ReportTable] = field(default_factory=list)
    written: set[Path] = field(default_factory=set)  #: files of the tables and ``json`` that are written

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
        """Requested files that are not written."""
        return [file for file in (*self.tables, self.json) if file is not None and file not in self.written]


def output_request() -> OutputRequest:
    """Return the output request of this call; outside of a call, an empty one."""
    return _REQUEST.get(None) or OutputRequest()


@contextmanager
def request_scope(request: OutputRequest) -> Iterator[None]:
    """Make this the current request inside the block."""
    token = _REQUEST.set(request)
    try:
        yield
    finally:
        _REQUEST.reset(token)


def require_ending(file: Path, option: str, endings: tuple[str, ...]) -> None:
    """Refuse a file whose name does not indicate a supported format.

    Raises:
        InputError: the file has another ending.
    """
    if file.suffix.lower() not in endings:
        raise InputError(f"{option} writes {', '.join(endings[:-1])} or {endings[-1]}; rename the file", file)


def size_of(text: str | None) -> tuple[float, float] | None:
    """Read ``WIDTHxHEIGHT``, in inches.

    Raises:
        InputError: it has another form, or a side is too small or too large.
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
