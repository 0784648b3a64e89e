"""What a command leaves: tables on the terminal, the files that were asked for, and a last line that says what next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.cli.claims import claim_files
from truesource.cli.console import console, echo

if TYPE_CHECKING:
    from rich.table import Table

    from truesource.report.table import ReportTable

UNBOUNDED = 100_000  #: characters; no table is as wide


class OutputFiles:
    """The files that a call writes besides what it prints, claimed before any work is done for them.

    Args:
        force: overwrite what exists.
        files: by option; None: not asked for.

    Raises:
        InputError: as `truesource.cli.claims.claim_files`.
    """

    def __init__(self, *, force: bool, **files: Path | None) -> None:
        self._files = {name: file for name, file in files.items() if file is not None}
        self._claimed = claim_files(*self._files.values(), force=force)

    def write(self, **contents: Callable[[Path], None]) -> list[str]:
        """Write what was asked for, all or nothing, in the order of the options; the names of the files.

        Args:
            contents: by option, what writes the file.
        """
        asked = {name: file for name, file in self._files.items() if name in contents}
        with self._claimed.together():
            for name, file in asked.items():
                contents[name](file)
        return list(map(str, asked.values()))

    def finish(self, then: str, *, folder: Path | None = None, **contents: Callable[[Path], None]) -> None:
        """Write what was asked for, and say what was written and what to do next.

        Args:
            then: the next command.
            folder: what is written already.
            contents: as `write`.
        """
        wrote = [*([] if folder is None else [str(folder)]), *self.write(**contents)]
        done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE keeps these numbers"
        echo(f"{done}. Next: {then}")


def json_of(records: object) -> Callable[[Path], None]:
    """Writes records as JSON."""

    def write(path: Path) -> None:
        from truesource.grammar.support.files import write_json

        write_json(path, records)

    return write


def figure_of(draw: Callable[[], str]) -> Callable[[Path], None]:
    """Writes a figure, drawn only where it is asked for, as an SVG file."""

    def write(path: Path) -> None:
        from truesource.grammar.support.files import write_text
        from truesource.report.figures import standalone

        write_text(path, standalone(draw()))

    return write


def rows_of(rows: list[dict[str, Any]]) -> Callable[[Path], None]:
    """Writes rows of the same keys as a Parquet file."""

    def write(path: Path) -> None:
        from truesource.evaluation.tokenisation.measure import write_rows

        write_rows(path, rows)

    return write


def csv_of(tables: Sequence[ReportTable]) -> Callable[[Path], None]:
    """Writes tables of one kind as CSV."""

    def write(path: Path) -> None:
        from truesource.grammar.support.files import write_text
        from truesource.report.table_files import csv_text

        write_text(path, csv_text(tables))

    return write


def latex_of(tables: Sequence[ReportTable]) -> Callable[[Path], None]:
    """Writes tables as LaTeX."""

    def write(path: Path) -> None:
        from truesource.grammar.support.files import write_text
        from truesource.report.table_files import latex_text

        write_text(path, latex_text(tables))

    return write


def show(table: ReportTable, width: int = 120) -> None:
    """Print a table; signatures are left to the files. Where it is too wide, intervals stand below their values."""
    printer = console(width)
    unbounded = printer.options.update_width(UNBOUNDED)
    made = _printable(table, " ")
    if printer.measure(made, options=unbounded).maximum > printer.width:
        made = _printable(table, "\n")
        if not printer.is_terminal:  # a file has room for all numbers
            printer.width = max(printer.width, printer.measure(made, options=unbounded).minimum)
    printer.print(made)


def _printable(table: ReportTable, separator: str) -> Table:
    from rich.table import Table

    made = Table(title=table.title or None, title_justify="left", caption=table.note or None, caption_justify="left")
    for number, heading in enumerate(table.columns):
        text = table.is_text(number)
        made.add_column(heading, justify="left" if text else "right", no_wrap=not text or number == 0)
    for row in table.rows:
        cells = (cell if isinstance(cell, str) or cell is None else cell.joined(separator) for cell in row.cells)
        made.add_row(*("-" if cell is None else cell for cell in cells))
    return made
