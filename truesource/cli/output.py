"""What a command leaves: tables on the terminal, the files that were asked for, and a last line that says what next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.cli.claims import claim_files
from truesource.cli.console import console, echo, printed
from truesource.grammar.support.extras import require_extras

if TYPE_CHECKING:
    from rich.table import Table

    from truesource.report.table import Cell, ReportTable

UNBOUNDED = 100_000  #: characters; no table is as wide
BORDERS = 3  #: characters beside each column
LEAST = 12  #: characters of a column whose lines may be broken


class OutputFiles:
    """The files that a call writes besides what it prints, claimed before any work is done for them.

    Args:
        force: overwrite what exists.
        files: by option; None: not asked for.

    Raises:
        InputError: as `truesource.cli.claims.claim_files`; or a figure is asked for, and the extra that draws it is
            not installed.
    """

    def __init__(self, *, force: bool, **files: Path | None) -> None:
        if files.get("figure") is not None:
            require_extras("--figure", "report")
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
    """Print a table; signatures are left to the files. Where it is too wide, intervals stand below their values.

    A file has room for all numbers. On a terminal that has not, the columns follow in several tables.
    """
    printer = console(width)
    unbounded = printer.options.update_width(UNBOUNDED)
    made = _printable(table, " ")
    if printer.measure(made, options=unbounded).maximum <= printer.width:
        printer.print(made)
    elif printer.is_terminal:
        for part in _parts(table, printer.width):
            printer.print(_printable(part, "\n"))
    else:
        made = _printable(table, "\n")
        printer.width = max(printer.width, printer.measure(made, options=unbounded).minimum)
        printer.print(made)


def _printable(table: ReportTable, separator: str) -> Table:
    from rich.table import Table

    made = Table(title=table.title or None, title_justify="left", caption=table.caption or None, caption_justify="left")
    for number, (heading, width) in enumerate(zip(table.columns, _widths(table, separator), strict=True)):
        text = table.is_text(number)
        made.add_column(
            heading, justify="left" if text else "right", no_wrap=not _wraps(table, number), min_width=width or None
        )
    for row in table.rows:
        made.add_row(*(_written(cell, separator) for cell in row.cells))
    return made


def _written(cell: Cell | str | None, separator: str) -> str:
    return "-" if cell is None else cell if isinstance(cell, str) else cell.joined(separator)


def _wraps(table: ReportTable, column: int) -> bool:
    """Whether lines of a column may be broken: of all texts but the first, which names the row."""
    return table.is_text(column) and column != _first_text(table)


def _first_text(table: ReportTable) -> int:
    return next((number for number in range(len(table.columns)) if table.is_text(number)), 0)


def _widths(table: ReportTable, separator: str) -> list[int]:
    """Characters that each column needs, as it is printed; 0 of those whose lines may be broken."""
    from rich.cells import cell_len

    columns = zip(*([_written(cell, separator) for cell in row.cells] for row in table.rows), strict=True)
    cells = list(columns) or [()] * len(table.columns)
    return [
        0 if _wraps(table, number) else max(map(cell_len, printed("\n".join((heading, *cells[number]))).split("\n")))
        for number, heading in enumerate(table.columns)
    ]


def _parts(table: ReportTable, width: int) -> list[ReportTable]:
    """Tables of some of the columns each, that fit; each begins with the columns that name the rows."""
    needed = [BORDERS + max(each, LEAST) for each in _widths(table, "\n")]
    key = list(range(_first_text(table) + 1))
    parts: list[list[int]] = [[]]
    for number in range(len(key), len(needed)):
        if parts[-1] and 1 + sum(needed[each] for each in (*key, *parts[-1], number)) > width:
            parts.append([])
        parts[-1].append(number)
    chosen = [[*key, *part] for part in parts]
    return [
        replace(
            table,
            columns=[table.columns[each] for each in columns],
            keys=(),
            text=[place for place, each in enumerate(columns) if table.is_text(each)],
            rows=[replace(row, cells=[row.cells[each] for each in columns]) for row in table.rows],
            title=table.title if columns is chosen[0] else "",
            note=table.note if columns is chosen[-1] else "",
        )
        for columns in chosen
    ]
