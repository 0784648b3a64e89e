"""Tables on the screen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from truesource.evaluation.show.table import first_text, printable, widths
from truesource.terminal.asked import asked
from truesource.terminal.console import console

if TYPE_CHECKING:
    from truesource.evaluation.show.table import ReportTable

UNBOUNDED = 100_000  #: characters; no table is as wide
BORDERS = 3  #: characters beside each column
LEAST = 12  #: characters of a column whose lines may be broken


def show(table: ReportTable, width: int = 120) -> None:
    """Print a table, and keep it for ``--table``; signatures are left to the files.

    Where it is too wide, intervals stand below their values. A file has room for all numbers. On a terminal that has
    not, the columns follow in several tables.
    """
    keep(table)
    printer = console(width)
    unbounded = printer.options.update_width(UNBOUNDED)
    made = printable(table, " ")
    if printer.measure(made, options=unbounded).maximum <= printer.width:
        printer.print(made)
    elif printer.is_terminal:
        for part in _parts(table, printer.width):
            printer.print(printable(part, "\n"))
    else:
        made = printable(table, "\n")
        printer.width = max(printer.width, printer.measure(made, options=unbounded).minimum)
        printer.print(made)


def keep(table: ReportTable) -> None:
    """Keep for ``--table`` what is printed in other words."""
    asked().shown.append(table)


def _parts(table: ReportTable, width: int) -> list[ReportTable]:
    """Tables of some of the columns each, that fit; each begins with the columns that name the rows."""
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
