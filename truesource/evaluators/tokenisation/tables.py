"""What `truesource evaluate tokenisation` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from truesource.cli.console import console, echo
from truesource.evaluation.tokenisation.estimators.estimate import TAIL, student

if TYPE_CHECKING:
    from truesource.evaluation.core.score import Score
    from truesource.evaluation.tokenisation.caching import Caching, Case
    from truesource.evaluation.tokenisation.canonical import LocalCanonicality
    from truesource.evaluation.tokenisation.curves import EstimatorPoint, OrderCurves, TemperaturePoint
    from truesource.evaluation.tokenisation.decomposition import Decomposition
    from truesource.evaluation.tokenisation.domain_shift import SetResult
    from truesource.evaluation.tokenisation.equal_cost import CostPoint
    from truesource.evaluation.tokenisation.further_tables import Tables
    from truesource.evaluation.tokenisation.grid import Grid
    from truesource.evaluation.tokenisation.measure import Measured
    from truesource.evaluation.tokenisation.word_table import WordTable

#: what that makes of the gaps
LOWER = {
    "exact": "",
    "unbiased": "",
    "lower": "a lower bound: the tokenisation gap is at least this, the model gap at most",
    "part": "of a part of the cuts: on average the tokenisation gap is at least this, the model gap at most",
}
#: what the estimates of a run are, documents together
BOUNDS = {"exact": "exact", "lower": "lower bound", "unbiased": "unbiased", "part": "of a part"}
GAPS = (
    ("gap", "marginal gap", "ln P(text) - ln P(one cut), nats a document"),
    ("gap_per_piece", "  of a piece", "nats"),
    ("entropy_per_piece", "entropy of the cuts", "of what cuts are drawn from, nats a piece"),
    ("entropy_gap_rho", "  and gap", "Spearman's correlation over documents, both of a piece"),
    ("canonical_mass", "canonical mass", "P(one cut) / P(text), mean of documents"),
    ("canonical_mass_per_word", "  of a word", "the same for a word, pooled"),
)
PARTS = (
    ("one_best_nll", "NLL with one cut"),
    ("true_nll", "- true NLL"),
    ("distance", "= distance"),
    ("tokenisation_gap", "  tokenisation gap"),
    ("model_gap", "  model gap"),
)
LARGE = 1e6  #: values from here on have four digits
TOO_LARGE = "over 1e308"
LOCAL = {"locally_canonical": "likeliest is the tokeniser's", "local_canonical_mass": "share of the tokeniser's"}
CASES: dict[Case, str] = {"first": "first time", "same": "again, cut alike", "other": "again, cut otherwise"}


def show(found: Measured) -> None:
    """The table of estimators, what one cut leaves out, and the distance to the truth."""
    _estimators(found)
    if found.warning is not None:
        echo(f"Warning: {found.warning}.", err=True)
    if found.gaps is not None:
        shares = {} if found.canonical is None else found.canonical.scores
        _gaps(f"what one cut leaves out, by {found.marginal}", {**found.gaps.scores, **shares})
    if found.decomposition is not None:
        _decomposition(found.decomposition, found.seed)


def show_tables(tables: Tables) -> None:
    """The tables that were asked for."""
    if tables.grid is not None:
        _grid(tables.grid)
    if tables.orders is not None:
        _counts(tables.counts, tables.orders)
        _temperatures(tables.temperatures)
    if tables.caching is not None:
        _caching(tables.caching)
    if tables.canonical is not None:
        _canonical(tables.canonical)
    if tables.words is not None:
        _words(tables.words)
    if tables.costs:
        _costs(tables.costs)
    if tables.sets:
        _sets(tables.sets)


def interval(score: Score, places: int | None = None) -> str:
    """``0.1234 [0.1200, 0.1300]``; small values with more places, large ones with four digits."""
    if places is None:
        places = 4 if abs(score.value) >= 0.01 or not score.value else 6
    value, *ends = (
        f"{x:.{places}f}" if abs(x) < LARGE else f"{x:.4g}"
        for x in (score.value, score.low, score.high)
        if x is not None
    )
    return f"{value} [{', '.join(ends)}]" if ends else value


def ppl_text(value: float | None) -> str:
    """A perplexity without an interval."""
    return TOO_LARGE if value is None else f"{value:.2f}" if value < LARGE else f"{value:.4g}"


def share_text(score: Score | None, places: int) -> str:
    """In percent."""
    if score is None:
        return "-"
    return f"{score.value:.{places}%}" if abs(score.value) < LARGE else f"{100 * score.value:.4g}%"


def _estimators(found: Measured) -> None:
    evaluation, notes = found.evaluation, found.notes
    rows, rounded = [], False
    for label in evaluation.runs:
        total, scores = evaluation.total(label), found.ppl[label]
        error = ""
        if total.standard_error:
            half = student(TAIL, total.degrees) * total.standard_error
            below = half < total.rounding
            error = f" ±<{total.rounding:.1g}" if below else f" ±{half:.1g}"
            rounded |= below
        if total.log_upper is not None and total.bound == "lower":
            error = f" to {total.log_upper:.3f}"
        rows.append(
            (
                label,
                f"{total.log_p:.3f}{error}{' (!)' if label in notes else ''}",
                interval(scores["ppl"], 2) if "ppl" in scores else TOO_LARGE,
                f"{scores['bits_per_character'].value:.4f}",
                BOUNDS[total.bound],
                "-" if total.least_ess is None else f"{total.least_ess:.1f}",
                "-" if total.largest_share is None else f"{total.largest_share:.2f}",
                f"{total.steps_per_piece:.1f}",
                share_text(scores.get("improvement"), 3),
            )
        )
    print_table(
        f"{found.model}: {len(evaluation.documents):,} documents, {int(evaluation.words.sum()):,} words",
        ("estimator", "ln P", "ppl of a word", "bits/char", "value is", "ESS", "share", "steps", "better"),
        rows,
        "ln P: nats, all documents, ± half of the 95% interval (of dpf by Student's t), or to a certain upper bound;"
        " ppl: in brackets 95%, documents resampled; ESS: effective samples, share: of the largest weight, both of the"
        " worst document (dpf: of its filters); steps: tokens that the model is run at, padding included,"
        " for each piece of the text; better: how much lower ppl is than one cut's;"
        " intervals of ln P by wr, block, wor and wor1 can be far too short"
        + ("; ±<: below rounding" if rounded else "")
        + "".join(f"\n(!) {label}: {note.note}" for label, note in notes.items()),
    )


def _gaps(title: str, scores: Mapping[str, Score]) -> None:
    rows = [(label, interval(scores[name]), meaning) for name, label, meaning in GAPS if name in scores]
    print_table(title, ("measure", "value", "meaning"), rows)


def _decomposition(found: Decomposition, seed: int) -> None:
    scores = found.scores(seed)
    rows = []
    for name, label in PARTS:
        share = scores.get(f"{name.removesuffix('_gap')}_share")
        cells = interval(scores[name]), interval(scores[f"{name}_per_word"])
        rows.append((label, *cells, "" if share is None else f"{share.value:.1%}"))
    bound = found.evaluation.total(found.run).bound
    note = LOWER[bound]
    error = scores.get("estimation_error_per_word")
    if error is not None and error.value > 0.0:
        rounding = found.rounding / float(found.words.sum())
        small = "below rounding, " if error.value <= rounding else ""
        note = f"standard error of the estimate: {small}{error.value:.2g} nats a word"
    if found.per_document > 1:
        note = f"documents of {found.per_document} sentences" + (f"\n{note}" if note else "")
    title = f"distance of {found.model} from the truth, by {found.run} ({BOUNDS[bound]}), nats"
    print_table(title, ("part", "of a sentence", "of a word", "share"), rows, note or None)
    for numbers, what in ((found.impossible, "the grammar cannot make"), (found.altered, "the tokeniser alters")):
        if numbers:
            echo(f"{len(numbers):,} sentences that {what} are left out of this distance", err=True)


def _grid(found: Grid) -> None:
    rows = [("one-best", "-", interval(found.one_best, 2) if found.one_best else TOO_LARGE, "-")]
    rows += [
        (
            f"{cell.method}, {cell.samples} cuts",
            cell.cuts,
            interval(cell.ppl, 2) if cell.ppl else TOO_LARGE,
            share_text(cell.improvement, 2),
        )
        for cell in found.cells
    ]
    note = "consistent: equal words of a document are cut alike"
    print_table("published estimators", ("method", "cuts", "ppl of a word", "better"), rows, note)


def _counts(points: Sequence[EstimatorPoint], orders: OrderCurves) -> None:
    counts = sorted({point.settings.samples for point in points if point.estimator != "one-best"})
    names = list(dict.fromkeys(point.estimator for point in points if point.estimator != "one-best"))
    ppl = {(point.estimator, point.settings.samples): point.ppl for point in points}
    order = {(record["order"], record["cuts"]): record["ppl"] for record in orders.records()}
    rows = [
        (
            str(k),
            *(ppl_text(ppl[name, k]) if (name, k) in ppl else "-" for name in names),
            ppl_text(order["tokeniser", k]),
            ppl_text(order["model", k]),
        )
        for k in counts
    ]
    note = "last two: the cuts of nbest, the tokeniser's own first, then by score; and likeliest for the model first"
    print_table("ppl of a word by number of cuts", ("cuts", *names, "by scores", "by model"), rows, note)


def _temperatures(points: Sequence[TemperaturePoint]) -> None:
    rows = [
        (
            f"{warm.point.settings.b:g}",
            ppl_text(warm.point.ppl),
            "-" if warm.difference is None else f"{warm.difference:+.2f}%",
        )
        for warm in points
    ]
    name = points[0].point.estimator if points else "wor1"
    print_table(f"{name} by inverse temperature", ("b", "ppl of a word", "against nbest"), rows)


def _caching(found: Caching) -> None:
    rows = []
    for row in found.rows:
        cells = [interval(row.losses[case]) if case in row.losses else "-" for case in CASES]
        rows.append(("all" if row.words == "all" else "of several pieces", *cells, f"{row.occurrences:,}"))
    note = "words that recur in a document, and are cut as before in some samples and otherwise in others"
    print_table("loss of a repeated word, nats", ("words", *CASES.values(), "repeats"), rows, note)


def _canonical(found: LocalCanonicality) -> None:
    rows = [(LOCAL[name], interval(score)) for name, score in found.scores.items()]
    others = sorted(
        ((times, word, cut) for word, cuts in found.most_likely.items() for cut, times in cuts.items()),
        key=lambda other: (-other[0], other[1:]),
    )
    note = f"{found.words:,} words with more than one cut, each after the tokeniser's own cut of the words before"
    if others:
        note += "\nlikeliest instead: " + ", ".join(f"{' '.join(cut)} ({times:,})" for times, _, cut in others[:5])
    print_table("cuts of a word in its context", ("measure", "value"), rows, note)


def _words(found: WordTable) -> None:
    labels = {
        "surprisal": "with one cut",
        "surprisal_marginal": "over all cuts",
        "surprisal_difference": "  difference",
        "surprisal_truth": "of the truth",
        "surprisal_excess": "  over all cuts, less the truth",
    }
    rows = [(labels[name], interval(score)) for name, score in found.scores.items()]
    note = None
    if found.truth is not None and (missing := int(np.isnan(found.truth).sum())):
        note = f"the truth has no value for {missing:,} of {len(found.truth):,} words"
    print_table(f"surprisal of a word, mean of {len(found.word):,}, nats", ("surprisal", "value"), rows, note)


def _costs(points: Sequence[CostPoint]) -> None:
    from truesource.evaluation.tokenisation.further_tables import said_reference

    rows = [
        (
            point.estimator,
            f"{point.settings.candidates} x {point.settings.particles}"
            if point.estimator in ("block", "dpf", "beam")
            else "1"
            if point.estimator == "one-best"
            else str(point.settings.samples),
            BOUNDS[point.bound],
            f"{point.steps_per_piece:.1f}",
            f"{point.error:+.5f}",
            "-" if point.sd is None else f"{point.sd:.5f}",
            f"{point.rmse:.5f}",
        )
        for point in sorted(points, key=lambda point: (point.steps_per_piece, point.rmse))
    ]
    note = "nats a document; bias and spread of ln P; RMSE: both together"
    columns = ("estimator", "cuts", "value is", "steps", "bias", "spread", "RMSE")
    title = f"estimators by cost, {points[0].documents} documents, against {said_reference(points[0].reference)}"
    print_table(title, columns, rows, note)


def _sets(sets: Sequence[SetResult]) -> None:
    names = (
        ("tokenisation_gap_per_word", "tokenisation gap"),
        ("model_gap_per_word", "model gap"),
        ("domain_shift_per_word", "own grammar better by"),
    )
    rows = []
    for one in sets:
        cells = [interval(one.scores[name]) if name in one.scores else "-" for name, _ in names]
        rows.append((one.name, *cells, f"{one.scores['training_impossible'].value:.1%}"))
    columns = ("sentences of", *(label for _, label in names), "new to the grammar")
    print_table(
        "other languages, nats a word", columns, rows, "new to the grammar: sentences that the first cannot make"
    )


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str | None = None) -> None:
    """A table: names on the left, numbers on the right, text as it is."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for i, name in enumerate(columns):
        text = i == 0 or (name in ("meaning", "value is", "cuts") and name != columns[0])
        table.add_column(name, justify="left" if text else "right", no_wrap=name != "meaning")
    for row in rows:
        table.add_row(*row)
    console(130).print(table)
