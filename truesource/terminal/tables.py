"""Tables on the screen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from truesource.evaluation.show.table import first_text, printable, widths
from truesource.terminal.console import console
from truesource.terminal.requests import output_request

if TYPE_CHECKING:
    from truesource.evaluation.show.table import ReportTable

UNBOUNDED = 100_000  #: characters; wider than any table
BORDERS = 3  #: characters between columns
LEAST = 12  #: minimum width of a column with line breaks, characters


def show(table: ReportTable, width: int = 120) -> None:
    """Print a table, and keep it for ``--table``; signatures are only in files.

    If it is too wide, intervals are below their values. A file has room for all numbers. A terminal without enough
    room shows the columns in several tables.
    """
    keep(table)
    printer = console(width)
    unbounded = printer.options.update_width(UNBOUNDED)
    printed = printable(table, " ")
    if printer.measure(printed, options=unbounded).maximum <= printer.width:
        printer.print(printed)
    elif printer.is_terminal:
        for part in _parts(table, printer.width):
            printer.print(printable(part, "\n"))
    else:
        printed = printable(table, "\n")
        printer.width = max(printer.width, printer.measure(printed, options=unbounded).minimum)
        printer.print(printed)


def keep(table: ReportTable) -> None:
    """Add a table to ``--table`` without printing it."""
    output_request().shown_tables.append(table)


def _parts(table: ReportTable, width: int) -> list[ReportTable]:
    """Divide the columns among tables that fit; each begins with the columns that name the rows."""
    needed = [BORDERS + max(each, LEAST) for each in widths(table, "\n")]
    key = list(range(first_text(table) + 1))
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
