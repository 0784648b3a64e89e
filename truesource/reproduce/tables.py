"""Rows and results as tables of the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truesource.report.table import Cell, ReportTable, TableRow, number_cell, score_cell
from truesource.reproduce.packaged import needs_of
from truesource.reproduce.result import NumberResult, RowResult
from truesource.reproduce.rows import Paper, Row

SPEC = ".4g"
EXACT = "no interval"  #: said of numbers that are compared as they are


def list_table(papers: Mapping[str, Paper], results: Mapping[str, RowResult]) -> ReportTable:
    """All rows: what each shows, what it runs, and what became of it."""
    rows = []
    for paper in papers.values():
        for row in paper.rows:
            known = results.get(row.name)
            verdict = "cannot be tested" if not row.runs else known.verdict if known is not None else None
            minutes = None if known is None else number_cell(known.minutes, ".0f" if known.minutes >= 10 else ".1f")
            needs = ", ".join(f"${name}" for name in needs_of(row)) or None
            rows.append(TableRow([row.name, f"{paper.paper}, {row.shows}", row.title, needs, verdict, minutes]))
    return ReportTable(
        columns=("row", "shows", "about", "needs", "verdict", "minutes"),
        keys=("row", "shows", "about", "needs", "verdict", "minutes"),
        text=(0, 1, 2, 3, 4),
        rows=rows,
        note="; ".join(
            f"${name} ({paper.paper}): {what}" for paper in papers.values() for name, what in paper.needs.items()
        ),
    )


def quantities_table(row: Row, result: RowResult) -> ReportTable:
    """Published numbers beside ours."""
    rows = []
    for name, found in result.quantities.items():
        published = row.quantities[name].published
        rows.append(
            TableRow(
                [name, number_cell(published, SPEC), shown_number(found), number_cell(len(found.by_seed) or None, ",")],
                found.signature,
            )
        )
    return ReportTable(
        title=f"{row.shows}: {row.title}",
        columns=("quantity", "published", "ours", "seeds"),
        keys=("quantity", "published", "ours", "seeds"),
        rows=rows,
        note=intervals_note(list(result.quantities.values())),
    )


def claims_table(row: Row, result: RowResult) -> ReportTable:
    """The claims with the differences that decide them."""
    rows = []
    for claim, found in zip(row.claims, result.claims, strict=True):
        for number, difference in enumerate(found.differences):
            says, verdict = (claim.says, found.verdict) if number == 0 else ("", "")
            rows.append(TableRow([says, difference.what, shown_number(difference), verdict]))
    return ReportTable(
        columns=("claim", "tested", "value", "verdict"),
        keys=("claim", "tested", "value", "verdict"),
        text=(0, 1, 3),
        rows=rows,
        note="A claim holds where the interval lies on its side; intervals are not adjusted for the number of claims",
    )


def shown_number(found: NumberResult) -> Cell | None:
    """A value with its interval."""
    if found.value is None:
        return None
    small = f"{EXACT}" if found.low is None else ""
    return score_cell({"value": found.value, "low": found.low, "high": found.high}, SPEC, small=small)


def intervals_note(numbers: Sequence[NumberResult]) -> str:
    """What the intervals are over."""
    over = list(dict.fromkeys(each.over for each in numbers if each.over is not None))
    return f"95% intervals over {'; '.join(over)}" if over else ""
