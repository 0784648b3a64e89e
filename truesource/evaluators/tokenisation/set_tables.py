"""What `truesource evaluate tokenisation --also` prints: several sets of texts side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truesource.cli.console import echo
from truesource.evaluation.tokenisation.curves import WARMED
from truesource.evaluation.tokenisation.grid import PREFIXES
from truesource.evaluators.tokenisation.tables import (
    CASES,
    LOCAL,
    TOO_LARGE,
    interval,
    ppl_text,
    print_table,
    share_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truesource.evaluation.core.score import Score
    from truesource.evaluation.tokenisation.further_tables import Tables
    from truesource.evaluation.tokenisation.grid import Grid
    from truesource.evaluation.tokenisation.measure_sets import MeasuredSets

ALIKE = {"consistent": "alike", "inconsistent": "apart"}  #: how words are cut, by the kind of cuts


def show_sets(found: MeasuredSets) -> None:
    """Perplexities by set, what one cut leaves out of each, and the published table."""
    _perplexities(found)
    for name, measured in found.sets.items():
        if measured.warning is not None and measured is not next(iter(found.sets.values())):
            echo(f"Warning: {name}: {measured.warning}.", err=True)
    if found.pooled.gaps is not None:
        _gaps(found)
    if found.grids:
        _grids(found.grids)
    if any(tables.temperatures for tables in found.tables.values()):
        _temperatures(found.tables)
    if any(tables.caching for tables in found.tables.values()):
        _caching(found.tables)
    if any(tables.canonical for tables in found.tables.values()):
        _canonical(found.tables)


def _perplexities(found: MeasuredSets) -> None:
    rows = []
    for name, measured in found.each.items():
        evaluation, notes = measured.evaluation, measured.notes
        cells = [
            f"{_value(measured.ppl[label].get('ppl'))}{' (!)' if label in notes else ''}" for label in evaluation.runs
        ]
        better = share_text(measured.ppl[measured.marginal].get("improvement"), 3)
        rows.append((name, f"{len(evaluation.documents):,}", f"{int(evaluation.words.sum()):,}", *cells, better))
    columns = ("set", "documents", "words", *found.pooled.evaluation.runs, "better")
    note = f"better: how much lower ppl by {found.pooled.marginal} is than one cut's; pooled: all documents together"
    print_table(f"{found.pooled.model}: ppl of a word by set", columns, rows, note)


def _gaps(found: MeasuredSets) -> None:
    names = ("gap", "gap_per_piece", "entropy_per_piece", "entropy_gap_rho")
    rows = []
    for name, measured in found.each.items():
        scores = {} if measured.gaps is None else measured.gaps.scores
        rows.append((name, *(interval(scores[each]) if each in scores else "-" for each in names)))
    columns = ("set", "gap of a document", "gap of a piece", "entropy of a piece", "rho")
    note = "nats; rho: Spearman's correlation over documents of entropy and gap, both of a piece"
    print_table(f"what one cut leaves out by set, by {found.pooled.marginal}", columns, rows, note)


def _grids(grids: Mapping[str, Grid]) -> None:
    """A row a set, as the published table has it: with one cut, and by method with words cut alike or not."""
    cells = next(iter(grids.values())).cells
    columns = ("set", "one cut", *(f"{ALIKE[cell.cuts]}\n{cell.method}" for cell in cells))
    rows = [
        (name, f"({_value(grid.one_best)})", *(_value(cell.ppl) for cell in grid.cells)) for name, grid in grids.items()
    ]
    samples = cells[0].samples if cells else 0
    note = (
        f"ppl of a word, {samples} cuts; {' and '.join(ALIKE[cuts] for cuts in PREFIXES)}: equal words of a document"
        " are cut alike, or each on its own"
    )
    print_table("published estimators by set", columns, rows, note)


def _temperatures(tables: Mapping[str, Tables]) -> None:
    """Figure 1 of Cao & Rimell (2021): a column a set."""
    points = {name: made.temperatures for name, made in tables.items()}
    rows = [
        (
            f"{warm.point.settings.b:g}",
            *(_percent(points[name][i].difference) for name in points),
        )
        for i, warm in enumerate(next(iter(points.values())))
    ]
    note = f"ppl by {WARMED} at inverse temperatures b, against nbest; below 0: the tighter bound"
    print_table(f"{WARMED} by inverse temperature and set", ("b", *points), rows, note)


def _caching(tables: Mapping[str, Tables]) -> None:
    """Table 2 of Cao & Rimell (2021): two rows a set."""
    rows = []
    for name, made in tables.items():
        for row in () if made.caching is None else made.caching.rows:
            cells = [interval(row.losses[case]) if case in row.losses else "-" for case in CASES]
            rows.append((name, "all" if row.words == "all" else "of several pieces", *cells, f"{row.occurrences:,}"))
    print_table("loss of a repeated word by set, nats", ("set", "of words", *CASES.values(), "repeats"), rows)


def _canonical(tables: Mapping[str, Tables]) -> None:
    rows = []
    for name, made in tables.items():
        if made.canonical is not None:
            scores = made.canonical.scores
            cells = [interval(scores[each]) if each in scores else "-" for each in LOCAL]
            rows.append((name, f"{made.canonical.words:,}", *cells))
    print_table("cuts of a word in its context by set", ("set", "words", *LOCAL.values()), rows)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.2f}%"


def _value(score: Score | None) -> str:
    return TOO_LARGE if score is None else ppl_text(score.value)
