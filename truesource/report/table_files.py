"""Tables as files for other programs: CSV with all digits, LaTeX for a paper."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from truesource.report.table import ABSENT, Cell, ReportTable

#: characters that LaTeX has not in every encoding, as it writes them
_IN_LATEX = {"\N{MINUS SIGN}": "$-$", ABSENT: "--", "<": "$<$", ">": "$>$"}
_TABLE, _SIGNATURE = "table", "signature"


def csv_text(tables: Sequence[ReportTable]) -> str:
    """All rows of tables of one kind.

    The first column is the title of the table, the last the signature. A column ``x`` with intervals is followed by
    ``x_low`` and ``x_high``. Numbers have all their digits; a cell is empty where nothing was measured.
    """
    names = {name: _forms(name, tables) for table in tables for name in _names(table)}
    stream = io.StringIO()
    fields = [_TABLE, *(form for forms in names.values() for form in forms), _SIGNATURE]
    writer = csv.DictWriter(stream, fields, restval="", lineterminator="\n")
    writer.writeheader()
    for table in tables:
        for row in table.rows:
            values: dict[str, Any] = {_TABLE: table.title, _SIGNATURE: row.signature}
            for name, cell in zip(_names(table), row.cells, strict=True):
                if isinstance(cell, Cell) and cell.score is not None:
                    of = zip(names[name], cell.score, strict=False)
                    values |= {form: "" if value is None else repr(value) for form, value in of}
                else:
                    values[name] = "" if cell is None else str(cell)
            writer.writerow(values)
    return stream.getvalue()


def _names(table: ReportTable) -> list[str]:
    return list(table.keys) or [_plain(heading) for heading in table.columns]


def _forms(name: str, tables: Sequence[ReportTable]) -> list[str]:
    """The columns of a file that one of a table becomes: three where some of its numbers have an interval."""
    scores = [
        cell.score
        for table in tables
        for row in table.rows
        for own, cell in zip(_names(table), row.cells, strict=True)
        if own == name and isinstance(cell, Cell) and cell.score is not None
    ]
    return [name, f"{name}_low", f"{name}_high"] if any(low is not None for _, low, _ in scores) else [name]


def latex_text(tables: Sequence[ReportTable]) -> str:
    """Each table as a ``table`` of LaTeX with rules of booktabs; titles and notes are captions, signatures comments."""
    return "\n".join(map(_latex, tables))


def _latex(table: ReportTable) -> str:
    import pandas as pd

    frame = pd.DataFrame(
        [[ABSENT if cell is None else _plain(str(cell)) for cell in row.cells] for row in table.rows],
        columns=[_plain(head) for head in table.columns],
        dtype=object,
    )
    style = frame.style.format(escape="latex").format_index(escape="latex", axis="columns").hide(axis="index")
    form = "".join("l" if table.is_text(number) else "r" for number in range(len(table.columns)))
    made = style.to_latex(column_format=form, hrules=True)
    caption = ". ".join(filter(None, (table.title, table.caption)))
    lines = [r"\begin{table}", r"\centering"]
    if caption:
        escaped = pd.DataFrame([[caption]]).style.format(escape="latex").hide(axis="index").hide(axis="columns")
        text = escaped.to_latex(column_format="l").split("\n")[1].removesuffix(r"\\").strip()
        lines.append(rf"\caption{{{text.removesuffix('.')}.}}")
    signed = [f"% {_first(row.cells)}: {row.signature}" for row in table.rows if row.signature]
    text = "\n".join([*lines, made.rstrip("\n"), r"\end{table}"])
    for character, written in _IN_LATEX.items():
        text = text.replace(character, written)
    text = re.sub(r"^([\[*])", r"{\1}", text, flags=re.MULTILINE)  # after the end of a row these are arguments
    return "\n".join(["% needs \\usepackage{booktabs}", *(line.replace("\n", " ") for line in signed), text, ""])


def _first(cells: Sequence[Cell | str | None]) -> str:
    return "" if cells[0] is None else str(cells[0])


def _plain(text: str) -> str:
    return " ".join(text.splitlines())
