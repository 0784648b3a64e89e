"""Tables as files for other programs: CSV and Parquet with all digits, LaTeX and Markdown with rounded numbers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.show.table import ABSENT, Cell, ReportTable, plain_number
from truesource.grammar.support.atomic_files import atomic_path, write_text
from truesource.grammar.support.printable import markdown, terminal

if TYPE_CHECKING:
    import pandas as pd

#: LaTeX of characters with a meaning, or missing from some encodings
_IN_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': "''",
    "\N{MINUS SIGN}": "$-$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{DOUBLE VERTICAL LINE}": r"$\Vert$",
    "\N{GREEK CAPITAL LETTER SIGMA}": r"$\Sigma$",
    ABSENT: "--",
}
_TABLE, _SIGNATURE = "table", "signature"


def write_columns(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns of one length as CSV or Parquet, as the ending of the file says; numbers have all their digits.

    Args:
        path: .csv or .parquet.
        columns: arrays or lists, by name; None if nothing was measured.
    """
    import pyarrow as pa

    table = pa.table(dict(columns))
    with atomic_path(path) as partial:
        if path.suffix.lower() == ".csv":
            table.to_pandas(types_mapper=_nullable).to_csv(partial, index=False, lineterminator="\n")
        else:
            import pyarrow.parquet as pq

            pq.write_table(table, partial, compression="zstd")


def as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return rows as columns; None if a row has no such entry."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _nullable(kind: Any) -> Any:
    """Return a type for whole numbers of which some are missing."""
    import pandas as pd
    import pyarrow as pa

    return pd.Int64Dtype() if pa.types.is_integer(kind) else None


def write_tables(path: Path, tables: Sequence[ReportTable]) -> None:
    """Write tables in the format that the ending of the file names: .csv, .parquet, .tex or .md."""
    WRITERS[path.suffix.lower()](path, tables)


def columns_of(tables: Sequence[ReportTable]) -> dict[str, list[Any]]:
    """Return all rows of tables as columns of one length; None if nothing was measured.

    The first column is the title of the table, the last the signature. A column ``x`` of numbers with intervals is
    followed by ``x_low`` and ``x_high``. Numbers have all their digits. Text in such a column, such as a
    remark below a number, is in ``x_note``.
    """
    rows = []
    for table in tables:
        names = _names(table)
        for row in table.rows:
            values: dict[tuple[str, str], Any] = {(_TABLE, ""): table.title or None}
            for name, cell in zip(names, row.cells, strict=True):
                values |= {(name, part): value for part, value in _parts(cell).items() if value is not None}
            rows.append((values, row.signature or None))
    order = list(dict.fromkeys(name for table in tables for name in _names(table)))
    forms = {form for values, _ in rows for form in values}
    numeric = {name for name, part in forms if part == "_value"}
    columns: dict[str, list[Any]] = {_TABLE: [values[_TABLE, ""] for values, _ in rows]}
    for name in order:
        if name not in numeric:
            columns[name] = [values.get((name, "")) for values, _ in rows]
            continue
        columns[name] = [values.get((name, "_value")) for values, _ in rows]
        for part in ("_low", "_high"):
            if (name, part) in forms:
                columns[f"{name}{part}"] = [values.get((name, part)) for values, _ in rows]
        notes = [_note(values, name) for values, _ in rows]
        if any(note is not None for note in notes):
            columns[f"{name}_note"] = notes
    return {**columns, _SIGNATURE: [signature for _, signature in rows]}


def _parts(cell: Cell | str | None) -> dict[str, str | float | None]:
    """Return the values of a cell for the columns of a file, by the suffix of their names, which is empty for text."""
    if cell is None:
        return {}
    if isinstance(cell, str):
        return {"": _plain(cell) or None}
    if cell.score is None:
        return {"": _plain(str(cell)) or None}
    value, low, high = cell.score
    plain = {part: plain_number(number) for part, number in (("_value", value), ("_low", low), ("_high", high))}
    return {**plain, "_note": _plain(cell.small) or None}


def _note(values: dict[tuple[str, str], Any], name: str) -> str | None:
    note: str | None = values.get((name, "_note"), values.get((name, "")))
    return None if note == ABSENT else note


def frame_of(tables: Sequence[ReportTable]) -> pd.DataFrame:
    """Return the columns of `columns_of` as a data frame; columns without any entry are excluded."""
    import pandas as pd

    filled = {name: values for name, values in columns_of(tables).items() if any(value is not None for value in values)}
    return pd.DataFrame({name: pd.Series(values).convert_dtypes() for name, values in filled.items()})


def csv_text(tables: Sequence[ReportTable]) -> str:
    """Return the columns of `columns_of` as CSV; a cell is empty if nothing was measured."""
    columns = columns_of(tables)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow("" if value is None else value if isinstance(value, str) else repr(value) for value in row)
    return stream.getvalue()


def _write_parquet(path: Path, tables: Sequence[ReportTable]) -> None:
    write_columns(path, {name: _of_one_type(values) for name, values in columns_of(tables).items()})


def _of_one_type(values: list[Any]) -> list[Any]:
    """Convert values to one type: whole numbers among others to floats, all to text if one is, else unchanged."""
    kinds = {type(value) for value in values if value is not None}
    if str in kinds and len(kinds) > 1:
        return [None if value is None else str(value) for value in values]
    if float in kinds:
        return [None if value is None else float(value) for value in values]
    return values


def _names(table: ReportTable) -> list[str]:
    """Return names of the columns in files; a name that is taken, or that every file has, gets a number."""
    names: list[str] = []
    for name in table.keys or map(_plain, table.columns):
        times = 1
        while (other := name if times == 1 else f"{name}_{times}") in (*names, _TABLE, _SIGNATURE):
            times += 1
        names.append(other)
    return names


def latex_text(tables: Sequence[ReportTable], stem: str = "") -> str:
    """Return each table as a LaTeX ``table`` with booktabs; titles and notes are captions, signatures comments.

    Labels are the name of the file with the title up to its first comma, which do not change with new data.
    """
    heads = [table.title.partition(",")[0] for table in tables]
    names = [re.sub(r"[^a-z0-9]+", "-", f"{stem} {head}".lower()).strip("-") for head in heads]
    labels = [f"{name}-{number}" if names.index(name) < number else name for number, name in enumerate(names)]
    return "\n".join(map(_latex, tables, labels))


def in_latex(text: str) -> str:
    """Escape a text for LaTeX, in one line."""
    return "".join(_IN_LATEX.get(character, character) for character in terminal(_plain(text)))


def _latex(table: ReportTable, label: str) -> str:
    form = "".join("l" if table.is_text(number) else "r" for number in range(len(table.columns)))
    sentences = [text[0].upper() + text[1:] for text in (table.title, table.caption) if text]
    caption = ". ".join(sentences).removesuffix(".")
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            *(
                f"% {terminal(_plain(f'{_text(row.cells[0])}: {row.signature}'))}"
                for row in table.rows
                if row.signature
            ),
            r"\begin{table}",
            r"\centering",
            *([rf"\caption{{{in_latex(caption)}.}}"] if caption else []),
            rf"\label{{tab:{label}}}",
            rf"\begin{{tabular}}{{{form}}}",
            r"\toprule",
            _latex_row(table.columns),
            r"\midrule",
            *(_latex_row([_text(cell) for cell in row.cells]) for row in table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    row = " & ".join(map(in_latex, cells))
    return (re.sub(r"^([\[*])", r"{\1}", row) + r" \\").lstrip()  # after the end of a row these would be its arguments


def markdown_text(tables: Sequence[ReportTable]) -> str:
    """Return each table in Markdown, numbers rounded as on the terminal; the title is bold, the note below."""
    return "\n".join(map(_markdown, tables))


def _markdown(table: ReportTable) -> str:
    marks = (":--" if table.is_text(number) else "--:" for number in range(len(table.columns)))
    rows = [_markdown_row([_text(cell) for cell in row.cells]) for row in table.rows]
    lines = [_markdown_row(table.columns), f"| {' | '.join(marks)} |", *rows]
    title = [f"**{in_markdown(table.title)}**", ""] if table.title else []
    note = ["", in_markdown(table.caption)] if table.caption else []
    return "\n".join([*title, *lines, *note, ""])


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(in_markdown, cells))} |"


def in_markdown(text: str) -> str:
    """Escape a text for Markdown, in one line."""
    return markdown(_plain(text))


def _text(cell: Cell | str | None) -> str:
    return ABSENT if cell is None else str(cell)


def _plain(text: str) -> str:
    return " ".join(text.split())


def _writer(text_of: Callable[[Sequence[ReportTable]], str]) -> Callable[[Path, Sequence[ReportTable]], None]:
    return lambda path, tables: write_text(path, text_of(tables))


WRITERS: dict[str, Callable[[Path, Sequence[ReportTable]], None]] = {
    ".csv": _writer(csv_text),
    ".parquet": _write_parquet,
    ".tex": lambda path, tables: write_text(path, latex_text(tables, path.stem)),
    ".md": _writer(markdown_text),
}
