"""A comparison as a table: the oracle, then a row for each model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit

from truesource.evaluation.comparing import ModelComparison
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import parts_of, signature
from truesource.evaluation.measures.bootstrap import TAILS, Interval
from truesource.evaluation.show.figures import MODEL, SECOND, TRUTH, figure, ratio_axis, to_svg
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, score_cell, shown
from truesource.evaluation.show.words import bound_warning, count, holm_family, unchecked_note, vocabulary_note
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import listed

if TYPE_CHECKING:
    from truesource.evaluation.comparing import ModelComparison, ModelRow, PairedDifference

#: columns that can be chosen, and their headings
HEADINGS = {
    "seeds": "seeds",
    "ppl": "PPL",
    "bound": "bound",
    "relative_ppl": "relative PPL",
    "kl": "KL",
    "sd": "SD of KL\nover seeds",
    "exact_kl": "exact KL",
    "difference": "difference\nto baseline",
    "p": "p",
    "p_adjusted": "p\n(Holm)",
    "sentences": "sentences",
    "tokens": "tokens",
}
SMALLEST_P = 1e-4  #: smaller ones are not told apart in tables


def warning_of(comparison: ModelComparison) -> str:
    """Return a sentence on models significantly below their bound, or nothing; see `bound_warning`."""
    left_out = comparison.n_sentences - comparison.sentences
    ratios = [(row.name, row.measures["relative_ppl"]) for row in comparison.rows]
    return bound_warning(
        [
            {
                "model": name,
                "sentences": comparison.sentences,
                "excluded": left_out,
                "relative_ppl": ratio.value,
                "relative_ppl_low": ratio.low,
                "relative_ppl_high": ratio.high,
            }
            for name, ratio in ratios
        ]
    )


def comparison_table(comparison: ModelComparison, columns: Sequence[str] | None = None) -> ReportTable:
    """Return the table of a comparison.

    Args:
        comparison: of one objective.
        columns: keys of `HEADINGS`, in order; None: the informative ones, with the intervals of relative
            perplexities and differences.

    Raises:
        InputError: there is no such column.
    """
    chosen = _columns_that_matter(comparison) if columns is None else list(columns)
    check_columns(chosen)
    differences = {difference.model: difference for difference in comparison.differences}
    rows = [
        _row(row, differences.get(row.name), comparison, chosen, columns is None)
        for row in (comparison.oracle, *comparison.rows)
    ]
    text = f"{count(comparison.n_sentences, 'sentence')} (data:{comparison.oracle.parts['data']})"
    return ReportTable(
        title=f"{comparison.objective.capitalize()} models, {text}",
        columns=("model", *(_heading(name, comparison) for name in chosen)),
        keys=("model", *chosen),
        rows=rows,
        note=_note(comparison, chosen),
    )


def _heading(column: str, comparison: ModelComparison) -> str:
    """Return the heading of a column; for the exact KL with its sentences, fewer than in the table."""
    sizes = _exact_sizes(comparison)
    return f"{HEADINGS[column]}\n({listed(sizes)} sentences)" if column == "exact_kl" and sizes else HEADINGS[column]


def _exact_sizes(comparison: ModelComparison) -> list[str]:
    """Return the numbers of sentences whose full distributions were compared, each once."""
    exact = [seed.exact for row in comparison.rows for seed in row.model.seeds if seed.exact is not None]
    return sorted({parts_of(score.signature).get("sentences", "?") for score in exact}, key=lambda n: (len(n), n))


def check_columns(columns: Sequence[str]) -> None:
    """Refuse unknown and repeated columns.

    Raises:
        InputError: a column is unknown or repeated.
    """
    unknown = [name for name in columns if name not in HEADINGS]
    if unknown:
        raise InputError(f"there is no column {unknown[0]!r}; there are {', '.join(HEADINGS)}")
    if len(set(columns)) < len(columns) or not columns:
        raise InputError(f"name each column once, of {', '.join(HEADINGS)}")


def _columns_that_matter(comparison: ModelComparison) -> list[str]:
    rows = comparison.rows
    several = any(len(row.model.seeds) > 1 for row in rows)
    bounds = [row.measures["bound"].value for row in (comparison.oracle, *rows)]
    shows = {
        "seeds": several,
        "ppl": True,
        "bound": not np.allclose(bounds, bounds[0], rtol=1e-9),
        "relative_ppl": True,
        "kl": True,
        "sd": several,
        "exact_kl": any(seed.exact is not None for row in rows for seed in row.model.seeds),
        "difference": bool(comparison.differences),
        "p_adjusted": bool(comparison.differences),
        "sentences": len({row.parts["sentences"] for row in rows}) > 1,
    }
    return [name for name, is_shown in shows.items() if is_shown]


def _row(
    row: ModelRow, found: PairedDifference | None, comparison: ModelComparison, columns: Sequence[str], brief: bool
) -> TableRow:
    oracle = row is comparison.oracle
    signed = signature(row.parts) + ("" if found is None else f"; kl_difference|{signature(found.parts)}")
    cells = [_CELLS[name](row, found) for name in columns]
    if brief:  # the interval of the relative perplexity says as much
        cells = [
            Cell(cell.text, score=cell.score) if name == "kl" and cell is not None else cell
            for name, cell in zip(columns, cells, strict=True)
        ]
    if not oracle and found is None and comparison.differences:
        cells = [Cell("baseline") if name == "difference" else cell for name, cell in zip(columns, cells, strict=True)]
    if oracle:
        cells = [None if name in ("seeds", "sd") else cell for name, cell in zip(columns, cells, strict=True)]
    return TableRow([row.name, *cells], signed, "oracle" if oracle else "")


def _measure(name: str, spec: str, *, ends: bool) -> Callable[[ModelRow, PairedDifference | None], Cell | None]:
    """Return the cell of a measure; without ``ends`` the interval is in files only."""

    def cell(row: ModelRow, _: PairedDifference | None) -> Cell | None:
        interval = row.measures[name]
        scored = score_cell({**interval._asdict(), **_why_none(row.parts)}, spec)
        return scored if scored is None or ends else Cell(scored.text, score=scored.score)

    return cell


def _number(value: float, text: str) -> Cell:
    return Cell(text, score=(value, None, None))


def _deviation(row: ModelRow, _: PairedDifference | None) -> Cell | None:
    sd = row.deviations.get("kl")
    return None if sd is None else _number(sd, shown(sd, ".4f"))


def _exact(row: ModelRow, _: PairedDifference | None) -> Cell | None:
    """Return the exact KL of one seed or the mean of several, with intervals; or the share of infinite contexts."""
    scores = [seed.exact for seed in row.model.seeds if seed.exact is not None]
    if len(scores) < len(row.model.seeds):
        return None
    infinite = [score.value for score in scores if score.name != "kl"]
    if infinite:
        return Cell(f"infinite in {max(infinite):.2%} of contexts")
    if len(scores) == 1:
        return score_cell(scores[0].as_record(), ".4f")
    return score_cell(mean_exact_kl(scores)._asdict(), ".4f")


def mean_exact_kl(scores: Sequence[Score]) -> Interval:
    """Return the mean over K seeds of one divergence, measured on the same sentences, with an interval over both.

    The errors of sentences and seeds add up as independent variances. The first is taken as large as if all seeds had
    it in the same sentences, and the second includes the interaction of both, so the interval is rather too wide.

    Args:
        scores: of two seeds or more, nats a token.
    """
    values = np.array([score.value for score in scores])
    mean, seeds = float(values.mean()), float(stdtrit(len(values) - 1, TAILS[1]) * values.std(ddof=1))
    seeds /= math.sqrt(len(values))
    below = [score.value - score.low for score in scores if score.low is not None]
    above = [score.high - score.value for score in scores if score.high is not None]
    if min(len(below), len(above)) < len(scores):
        return Interval(mean)
    sentences = float(np.mean(below)), float(np.mean(above))
    return Interval(mean, max(0.0, mean - math.hypot(sentences[0], seeds)), mean + math.hypot(sentences[1], seeds))


def _difference(_: ModelRow, found: PairedDifference | None) -> Cell | None:
    if found is None:
        return None
    return score_cell({**found.contrast.interval._asdict(), **_why_none(found.parts)}, "+.4f")


def _why_none(parts: Mapping[str, object]) -> dict[str, str]:
    """Return ``no_interval``, the reason for a missing interval, if the parts of a signature have it."""
    method, _, why = str(parts.get("ci", "")).partition("/")
    return {"no_interval": why} if method == "none" and why else {}


def _p(adjusted: bool) -> Callable[[ModelRow, PairedDifference | None], Cell | None]:
    def cell(_: ModelRow, found: PairedDifference | None) -> Cell | None:
        p = None if found is None else found.p_adjusted if adjusted else found.contrast.p
        return None if p is None else p_cell(p)

    return cell


def p_cell(p: float) -> Cell:
    """Return a p-value, as tables show it."""
    return _number(p, f"<{SMALLEST_P}" if p < SMALLEST_P else f"{p:.4f}")


def _part(name: str) -> Callable[[ModelRow, PairedDifference | None], Cell | None]:
    def cell(row: ModelRow, _: PairedDifference | None) -> Cell | None:
        value = row.parts[name]
        return _number(value, f"{value:,}") if isinstance(value, int) else Cell(str(value))

    return cell


_CELLS: dict[str, Callable[[ModelRow, PairedDifference | None], Cell | None]] = {
    "seeds": lambda row, _: _number(len(row.model.seeds), str(len(row.model.seeds))),
    "ppl": _measure("ppl", ".2f", ends=False),
    "bound": _measure("bound", ".2f", ends=False),
    "relative_ppl": _measure("relative_ppl", ".4f", ends=True),
    "kl": _measure("kl", ".4f", ends=True),
    "sd": _deviation,
    "exact_kl": _exact,
    "difference": _difference,
    "p": _p(adjusted=False),
    "p_adjusted": _p(adjusted=True),
    "sentences": _part("sentences"),
    "tokens": _part("tokens"),
}


def _note(comparison: ModelComparison, columns: Sequence[str]) -> str:
    """Return the note below the table: what the numbers are, and what their intervals are over."""
    seeds = {row.name: len(row.model.seeds) for row in comparison.rows}
    single = [name for name, k in seeds.items() if k == 1]
    if len(single) == len(seeds):
        of = "over sentences; they speak of these trained models, not of other seeds"
    elif single:
        of = f"over sentences and training seeds; {listed(single)} with one seed: of this trained model only"
    else:
        of = "over sentences and training seeds"
    words = vocabulary_note([signature(row.parts) for row in comparison.rows])
    unchecked = unchecked_note((row.name, signature(row.parts)) for row in comparison.rows)
    notes = [f"95% intervals {of}", *filter(None, (words, unchecked))]
    if "difference" in columns and comparison.differences:
        common = "all" if comparison.sentences == comparison.n_sentences else f"the {comparison.sentences:,}"
        which = f"{common} sentences" if common == "all" else f"{common} sentences that all models can make"
        notes.append(f"Difference: KL minus the KL of {comparison.baseline}, nats a token, on {which}")
    if {"p", "p_adjusted"} & set(columns) and comparison.differences:
        family = holm_family(comparison.differences[0].tests)
        notes.append(f"p: two-sided, of no difference{f'; {family}' if 'p_adjusted' in columns else ''}")
    sizes = _exact_sizes(comparison)
    if "exact_kl" in columns and sizes:
        notes.append(f"Exact KL: from full distributions, in all contexts of the first {listed(sizes)} sentences")
    return ". ".join(notes)


def comparison_figure(comparisons: Sequence[ModelComparison]) -> str:
    """Draw relative perplexities with intervals and seeds as dots, next to differences to the baseline."""
    heights = [len(comparison.rows) + 1.6 for comparison in comparisons]
    with figure(9.4, 0.5 + 0.42 * sum(heights), "comparison") as fig:
        panels = fig.subplots(len(comparisons), 2, squeeze=False, height_ratios=heights, width_ratios=[1.25, 1.0])
        for (left, right), comparison in zip(panels, comparisons, strict=True):
            _relative_panel(left, comparison)
            _difference_panel(right, comparison)
            right.set_visible(bool(comparison.differences))
            for axes in (left, right):
                axes.set_ylim(len(comparison.rows) - 0.45, -0.55)
                axes.tick_params(axis="y", length=0, labelcolor="#1f2937")
                axes.spines["left"].set_visible(False)
                axes.grid(axis="x")
        return to_svg(fig, "comparison", "Models compared with the truth and with a baseline")


def _relative_panel(axes: Any, comparison: ModelComparison) -> None:
    values = [1.0]
    axes.axvline(1.0, color=TRUTH, linewidth=1.5)
    for y, row in enumerate(comparison.rows):
        dots = [seed["relative_ppl"] for seed in row.by_seed]
        axes.plot(dots, [y + 0.24] * len(dots), "o", markersize=2.8, color=SECOND, alpha=0.75)
        values += [*dots, *_draw_interval(axes, row.measures["relative_ppl"], y, MODEL)]
    names = [
        row.name if len(row.model.seeds) == 1 else f"{row.name} ({len(row.model.seeds)} seeds)"
        for row in comparison.rows
    ]
    axes.set_yticks(range(len(names)), names)
    ratio_axis(axes, min(values), max(values))
    dotted = " (small: seeds)" if any(row.by_seed for row in comparison.rows) else ""
    axes.set_xlabel(f"relative perplexity of {comparison.objective} models{dotted}")


def _difference_panel(axes: Any, comparison: ModelComparison) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.axvline(0.0, color=TRUTH, linewidth=1.5)
    places = {row.name: y for y, row in enumerate(comparison.rows)}
    for difference in comparison.differences:
        _draw_interval(axes, difference.contrast.interval, places[difference.model], MODEL)
    axes.plot([0.0], [places[comparison.baseline]], "D", markersize=5, color=TRUTH)
    axes.set_yticks(range(len(places)), [""] * len(places))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel(f"KL minus the KL of {comparison.baseline}, nats a token")


def _draw_interval(axes: Any, value: Interval, y: float, colour: str) -> list[float]:
    """Draw a point with its interval; return the numbers that the axis must hold."""
    ends = [value.value if end is None else end for end in (value.low, value.high)]
    axes.plot(ends, [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
    axes.plot([value.value], [y], "o", markersize=6, color=colour)
    return ends
