"""One table, for the terminal and for the report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.score import no_interval
from truesource.grammar.support.printable import no_interval_text, shortened, terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PLACES = re.compile(r"\.\df")
ABSENT = "\N{EN DASH}"  #: where nothing was measured
LONGEST_WORD = 200  #: characters of a word in a table
WIDTH = 200  #: characters of a table as text
LONGEST_TITLE = 80  #: characters of a run without a blank in the one line of a table
FEW_COLUMNS = 8  #: most columns with intervals next to values


@dataclass(frozen=True)
class Cell:
    """A value, with its interval or a remark."""

    text: str
    ends: tuple[str, str] | None = None  #: of the interval
    small: str = ""  #: a remark below the value, on the terminal in brackets after it
    #: the number and the ends of its interval with all digits, for files
    score: tuple[float, float | None, float | None] | None = field(default=None, compare=False)
    #: reason for a missing interval, as a code, see `truesource.grammar.support.printable`
    no_interval: str = field(default="", compare=False)

    @property
    def beside(self) -> str:
        """The ends of the interval and the remark, for the report."""
        ends = "" if self.ends is None else f"{self.ends[0]} {ABSENT} {self.ends[1]}"
        return "; ".join(part for part in (ends, self.small) if part)

    def __str__(self) -> str:
        return self.joined(" ")

    def joined(self, separator: str) -> str:
        """Return the value, its interval and the remark, with this between them."""
        ends = None if self.ends is None else f"[{self.ends[0]}, {self.ends[1]}]"
        return separator.join(part for part in (self.text, ends, f"({self.small})" if self.small else None) if part)


@dataclass(frozen=True)
class TableRow:
    """Cells, and the signature of their numbers."""

    cells: Sequence[Cell | str | None]  #: None: not measured
    signature: str = ""
    kind: str = ""  #: CSS class in the report, such as ``oracle``


@dataclass(frozen=True, kw_only=True, repr=False)
class ReportTable:
    """Headings and rows."""

    columns: Sequence[str]  #: headings; a line break divides one
    rows: Sequence[TableRow]
    title: str = ""
    note: str = ""
    keys: Sequence[str] = ()  #: names of the columns in files; empty: the headings
    text: Sequence[int] = (0,)  #: numbers of the columns of text, -1 for the last; the others are numbers
    sortable: bool = False  #: whether a page may let its reader change the order of the rows

    @property
    def caption(self) -> str:
        """The note, and a sentence on values without an interval."""
        cells = [cell for row in self.rows for cell in row.cells if isinstance(cell, Cell)]
        reasons = no_interval_text([cell.no_interval for cell in cells if cell.no_interval])
        return ". ".join(filter(None, (self.note.removesuffix(".") if reasons else self.note, reasons)))

    def __repr__(self) -> str:
        name = f"{shortened(self.title, LONGEST_TITLE)}: " if self.title else ""
        return f"ReportTable({name}{len(self.rows):,} rows, {len(self.columns)} columns)"

    def __str__(self) -> str:
        return table_text(self)

    def _repr_html_(self) -> str:
        """Return the table for a notebook; all numbers are text, so the rows keep their order."""
        from html import escape

        def line(tag: str, texts: Sequence[str]) -> str:
            sides = ("left" if self.is_text(column) else "right" for column in range(len(texts)))
            cells = (
                f'<{tag} style="text-align: {side}">{escape(text)}</{tag}>'
                for text, side in zip(texts, sides, strict=True)
            )
            return f"<tr>{''.join(cells)}</tr>"

        head = line("th", [column.replace("\n", " ") for column in self.columns])
        rows = "".join(
            line("td", [ABSENT if cell is None else _one_line(str(cell)) for cell in row.cells]) for row in self.rows
        )
        title = f"<p><b>{escape(self.title)}</b></p>" if self.title else ""
        note = f"<p>{escape(self.caption)}</p>" if self.caption else ""
        return f"{title}<table><thead>{head}</thead><tbody>{rows}</tbody></table>{note}"

    def is_text(self, column: int) -> bool:
        """Return True if a column holds text, which is aligned left."""
        return column in self.text or column - len(self.columns) in self.text


def _one_line(text: str) -> str:
    """Return the words of a cell on one line, with the indentation."""
    return "\N{NO-BREAK SPACE}" * (len(text) - len(text.lstrip(" "))) + " ".join(text.split())


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
    console = plain_console(file=StringIO(), width=WIDTH)
    console.print(printable(table, "\n" if len(table.columns) > FEW_COLUMNS else " "))
    lines: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in lines.splitlines())


def printable(table: ReportTable, separator: str) -> Table:
    """Return a table for a console of the library rich; ``separator`` is between values and intervals."""
    from rich.table import Table

    grid = Table(title=table.title or None, title_justify="left", caption=table.caption or None, caption_justify="left")
    for number, (heading, width) in enumerate(zip(table.columns, widths(table, separator), strict=True)):
        text = table.is_text(number)
        grid.add_column(
            heading, justify="left" if text else "right", no_wrap=not wraps(table, number), min_width=width or None
        )
    for row in table.rows:
        grid.add_row(*(written(cell, separator) for cell in row.cells))
    return grid


def written(cell: Cell | str | None, separator: str) -> str:
    """Return the text of a cell."""
    return "-" if cell is None else cell if isinstance(cell, str) else cell.joined(separator)


def wraps(table: ReportTable, column: int) -> bool:
    """Return True if lines of a column may be broken: all texts but the first, which names the row."""
    return table.is_text(column) and column != first_text(table)


def first_text(table: ReportTable) -> int:
    """Return the number of the first column of text."""
    return next((number for number in range(len(table.columns)) if table.is_text(number)), 0)


def widths(table: ReportTable, separator: str) -> list[int]:
    """Return the printed width of each column in characters; 0 if its lines may be broken."""
    from rich.cells import cell_len

    columns = zip(*([written(cell, separator) for cell in row.cells] for row in table.rows), strict=True)
    cells = list(columns) or [()] * len(table.columns)
    return [
        0 if wraps(table, number) else max(map(cell_len, printed("\n".join((heading, *cells[number]))).split("\n")))
        for number, heading in enumerate(table.columns)
    ]


def plain_number(value: Any) -> Any:
    """Return a NumPy number as a Python number; other values unchanged."""
    return value.item() if hasattr(value, "item") else value


def number_cell(value: float | None, spec: str, *, small: str = "") -> Cell | None:
    """Return a number without an interval; files have all its digits. None if there is no number.

    Args:
        value: of any kind, NumPy's too.
        spec: its format, as for `format`; a comma alone for counts, which are shown in full.
        small: a remark.
    """
    if value is None:
        return None
    plain = plain_number(value)
    text = f"{plain:,}" if spec == "," else shown(plain, spec)
    return Cell(text, None, small, (plain, None, None))


def score_cell(score: Mapping[str, Any] | None, spec: str, *, small: str = "") -> Cell | None:
    """Return the value of a score's record with its interval; None if there is no score.

    Args:
        score: with ``value``, ``low`` and ``high``; without ends, ``no_interval`` or the signature may have the reason.
        spec: format of numbers, as for `format`.
        small: a remark.
    """
    if score is None:
        return None
    low, high = score.get("low"), score.get("high")
    ends = None if low is None or high is None else (shown(low, spec), shown(high, spec))
    counted = ends is not None or isinstance(score["value"], int)
    why = "" if counted else score.get("no_interval") or no_interval(score.get("signature") or "") or ""
    return Cell(shown(score["value"], spec), ends, small, (score["value"], low, high), why)


def shown(value: float, spec: str) -> str:
    """Return a number with a true minus, except before zeros; too large a number for its places in powers of ten.

    Numbers from a thousand have no decimal places.
    """
    if _PLACES.fullmatch(spec) and 1e3 <= abs(value) < 1e7:
        spec = ".0f"
    text = format(value, spec if abs(value) < 1e7 else ".4g")
    if not any(character in "123456789" for character in text):
        text = text.lstrip("-")
    return text.replace("-", "\N{MINUS SIGN}")
