"""Tables of text, for terminals."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.printable import shortened, terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from truesource.evaluation.show.table import Cell, ReportTable

LONGEST_WORD = 200  #: characters of a word in a table
FEW_COLUMNS = 8  #: beside which there is room for intervals


def printed(text: str) -> str:
    """Return a text as tables show it: plain, and its long words shortened, so that a column stays readable."""
    return shortened(terminal(text), LONGEST_WORD)


def plain_console(**options: Any) -> Console:
    """Return a console that takes plain text: ``[bold]`` and ``:dog:`` are printed as they are.

    Args:
        options: of a console of the library rich.
    """
    from rich.console import Console

    class Printable(Console):
        """Takes plain text only."""

        def render_str(self, text: str, **options: Any) -> Any:
            return super().render_str(printed(text), **options)

    return Printable(markup=False, emoji=False, highlight=False, **options)


def table_text(table: ReportTable) -> str:
    """Return a table as text; intervals are below their values if the table has many columns."""
    console = plain_console(file=StringIO(), width=LONGEST_WORD)
    console.print(printable(table, "\n" if len(table.columns) > FEW_COLUMNS else " "))
    lines: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in lines.splitlines())


def printable(table: ReportTable, separator: str) -> Table:
    """Return a table for a console of the library rich; ``separator`` is between values and intervals."""
    from rich.table import Table

    made = Table(title=table.title or None, title_justify="left", caption=table.caption or None, caption_justify="left")
    for number, (heading, width) in enumerate(zip(table.columns, widths(table, separator), strict=True)):
        text = table.is_text(number)
        made.add_column(
            heading, justify="left" if text else "right", no_wrap=not wraps(table, number), min_width=width or None
        )
    for row in table.rows:
        made.add_row(*(written(cell, separator) for cell in row.cells))
    return made


def written(cell: Cell | str | None, separator: str) -> str:
    """Return the text of a cell."""
    return "-" if cell is None else cell if isinstance(cell, str) else cell.joined(separator)


def wraps(table: ReportTable, column: int) -> bool:
    """True if lines of a column may be broken: of all texts but the first, which names the row."""
    return table.is_text(column) and column != first_text(table)


def first_text(table: ReportTable) -> int:
    """Return the number of the first column of text."""
    return next((number for number in range(len(table.columns)) if table.is_text(number)), 0)


def widths(table: ReportTable, separator: str) -> list[int]:
    """Characters that each column needs, as it is printed; 0 of those whose lines may be broken."""
    from rich.cells import cell_len

    columns = zip(*([written(cell, separator) for cell in row.cells] for row in table.rows), strict=True)
    cells = list(columns) or [()] * len(table.columns)
    return [
        0 if wraps(table, number) else max(map(cell_len, printed("\n".join((heading, *cells[number]))).split("\n")))
        for number, heading in enumerate(table.columns)
    ]
