"""Figures of sums over segmentations: parts of the distance to the truth, estimators at equal cost, entropy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from truesource.evaluation.measures.bootstrap import Interval
from truesource.evaluation.show.figures import MODEL, QUIET, SECOND, TRUTH, figure, plain_log_axis, round_ticks, to_svg
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.words import number
from truesource.evaluation.tokenisation.measure_sets import POOLED

# Okabe & Ito (2008), by family: certain bounds, samplers of whole segmentations, model-guided estimators
COLOURS = {
    "one-best": "#6B7280",
    "nbest": "#E69F00",
    "distinct": "#B58900",
    "wr": "#CC79A7",
    "wr1": "#8C4A73",
    "wor": "#56B4E9",
    "wor1": "#0066A6",
    "block": "#00805F",
    "dpf": "#C04A00",
    "beam": "#7A5C00",
    "guided": "#5B3F8C",
}
#: colours and markers of the sets of texts, in order
SETS = (
    (MODEL, "o"),
    ("#E69F00", "^"),
    (SECOND, "s"),
    ("#8C4A73", "D"),
    ("#56B4E9", "v"),
    ("#7A5C00", "P"),
    ("#5B3F8C", "X"),
)
ACROSS = 4  #: names of sets per line
FLOOR = 1e-6  #: nats; smaller errors are drawn at this value


class Parts(NamedTuple):
    """The parts of the NLL of a model with the canonical tokenisation, nats per word."""

    model: str
    truth: Interval
    model_gap: Interval
    tokenisation_gap: Interval


class Cost(NamedTuple):
    """The cost and error of an estimator at one setting."""

    estimator: str
    steps: float  #: token-steps of the model for each piece of the text
    error: float  #: root mean square over documents of the distance from the reference, nats
    certain: bool  #: True for a certain lower bound
    reference: str  #: name of the reference


def parts_of(records: Sequence[Record]) -> list[Parts]:
    """Collect the decompositions among records of models, one per model."""
    names = ("true_nll_per_word", "model_gap_per_word", "tokenisation_gap_per_word")
    parts_by_model: dict[str, dict[str, Interval]] = {}
    for record in records:
        if record["name"] in names and "by" not in record and "table" not in record:
            value = Interval(*(record[part] for part in Interval._fields))
            parts_by_model.setdefault(record["model"], {})[record["name"]] = value
    return [Parts(model, *(parts[name] for name in names)) for model, parts in parts_by_model.items()]


def costs_of(records: Sequence[Record]) -> list[Cost]:
    """Collect the comparison at equal cost among the records of one model."""
    return [
        Cost(
            record["estimator"],
            record["steps_per_piece"],
            record["value"],
            record["bound"] in ("lower", "exact"),
            record["reference"],
        )
        for record in records
        if record.get("table") == "equal-cost" and record["name"] == "rmse"
    ]


def decomposition_figure(rows: Sequence[Parts]) -> str:
    """Draw stacked bars of the NLL of the canonical tokenisation, and the two gaps with intervals, as ``<svg>``."""
    with figure(9.4, 1.3 + 0.5 * len(rows), "decomposition") as canvas:
        _decomposition(canvas, rows)
        return to_svg(canvas, "decomposition", "True NLL, model gap and tokenisation gap of each model")


def cost_figure(index: int, points: Sequence[Cost]) -> str:
    """Draw the error of each estimator against its token-steps, as ``<svg>``."""
    salt = f"cost{index}"
    with figure(5.4, 3.9, salt) as canvas:
        _cost(canvas, points)
        return to_svg(canvas, salt, "Error of the estimators against token-steps")


def entropy_figure(index: int, gaps: Sequence[Record], records: Sequence[Record]) -> str:
    """Draw marginal gap against entropy of segmentations by document, both per piece, as ``<svg>``.

    Args:
        index: number of the figure on its page.
        gaps: `truesource.evaluation.tokenisation.marginal_gaps.MarginalGaps.records`, of one or several sets of texts.
        records: records that include the correlation.
    """
    salt = f"entropy{index}"
    with figure(4.6, 3.9 + _legend_height(gaps), salt) as canvas:
        _entropy(canvas, gaps, records)
        return to_svg(canvas, salt, "Marginal gap against the entropy of segmentations")


def tokenisation_figure(records: Sequence[Record], gaps: Sequence[Record]) -> str:
    """Draw all figures that the records of one model allow, as one ``<svg>``."""
    parts, points = parts_of(records), costs_of(records)
    lower = bool(points) + bool(gaps)
    heights = [1.3 + 0.5 * len(parts)] * bool(parts) + [3.9 + _legend_height(gaps)] * bool(lower)
    with figure(9.8 if parts or lower == 2 else 5.4, sum(heights) or 1.0, "tokenisation") as canvas:
        if heights:
            rows: Any = canvas.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
            if parts:
                _decomposition(rows[0], parts)
            if lower:
                below: Any = rows[-1].subfigures(1, lower, squeeze=False, width_ratios=[1.35, 1.0][:lower])[0]
                if points:
                    _cost(below[0], points)
                if gaps:
                    _entropy(below[-1], gaps, records)
        return to_svg(canvas, "tokenisation", "Sums over tokenisations")


def _decomposition(canvas: Any, rows: Sequence[Parts]) -> None:
    whole, gaps = canvas.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.15))
    for y, row in enumerate(rows):
        left = 0.0
        for name, colour, part in (
            ("true NLL", TRUTH, row.truth),
            ("model gap", MODEL, row.model_gap),
            ("tokenisation gap", SECOND, row.tokenisation_gap),
        ):
            whole.barh(y, part.value, 0.56, left=left, color=colour, alpha=0.85, label=name if y == 0 else None)
            left += part.value
        whole.annotate(f"{left:.2f}", (left, y), (4, 0), textcoords="offset points", va="center", fontsize=8.5)
        for shift, colour, part in ((-0.14, MODEL, row.model_gap), (0.14, SECOND, row.tokenisation_gap)):
            gaps.plot(_ends(part), [y + shift] * 2, color=colour, linewidth=2.2, solid_capstyle="butt")
            gaps.plot([part.value], [y + shift], marker="o", color=colour, markersize=5.5, linestyle="none")
            gaps.annotate(
                number(part.value, 3),
                (part.value, y + shift),
                (0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=8,
                color=colour,
            )
    whole.set_yticks(range(len(rows)), [row.model for row in rows])
    whole.set_ylim(len(rows) - 0.5, -0.55)
    whole.margins(x=0.14)
    whole.set_xlim(left=0.0)
    whole.set_xlabel("NLL with the canonical tokenisation, nats per word")
    gaps.set_xlabel("the two gaps, with 95% intervals")
    _gap_axis(gaps, rows)
    for axes in (whole, gaps):
        axes.tick_params(axis="y", length=0, labelcolor="#1f2937")
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
    canvas.legend(loc="outside upper center", ncols=3, handlelength=1.4, columnspacing=1.4)


def _ends(part: Interval) -> tuple[float, float]:
    """Return the ends of an interval; without one, the value twice, which draws only the point."""
    return (part.value, part.value) if part.low is None or part.high is None else (part.low, part.high)


def _gap_axis(axes: Any, rows: Sequence[Parts]) -> None:
    """Set a logarithmic scale if all intervals are above zero and the gaps differ much; else a line at zero."""
    ends = [end for row in rows for part in (row.model_gap, row.tokenisation_gap) for end in _ends(part)]
    low, high = min(ends), max(ends)
    if low > 0.0 and high > 8.0 * low:
        axes.set_xscale("log")
        axes.set_xlim(0.6 * low, 1.6 * high)
        plain_log_axis(axes.xaxis, round_ticks(0.6 * low, 1.6 * high, 6))
    else:
        axes.axvline(0.0, color=TRUTH, linewidth=1.3)
        axes.margins(x=0.08)


def _cost(canvas: Any, points: Sequence[Cost]) -> None:
    axes = canvas.subplots()
    for name, curve in _curves(points).items():
        x, y = [p.steps for p in curve], [max(p.error, FLOOR) for p in curve]
        certain = all(p.certain for p in curve)
        axes.plot(
            x,
            y,
            color=COLOURS.get(name, "#111827"),
            linestyle=(0, (4, 2)) if certain else "-",
            linewidth=1.5,
            marker="o",
            markersize=4.5,
            markerfacecolor="white" if certain else None,
            label=name,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    x_ends = min(p.steps for p in points), max(p.steps for p in points)
    y_ends = max(min(p.error for p in points), FLOOR), max(max(p.error for p in points), FLOOR)
    for axis, (low, high) in ((axes.xaxis, x_ends), (axes.yaxis, y_ends)):
        plain_log_axis(axis, round_ticks(0.75 * low, 1.35 * high, 6))
    axes.set_xlim(0.75 * x_ends[0], 1.35 * x_ends[1])
    axes.set_ylim(0.7 * y_ends[0], 1.45 * y_ends[1])
    axes.set_xlabel("token-steps of the model per piece")
    axes.set_ylabel("error of ln P(text), nats, root mean square")
    axes.set_title("dashed: certain lower bounds", fontsize=9, color=QUIET)
    axes.grid(which="major")
    axes.minorticks_off()
    canvas.legend(loc="outside right center", handlelength=2.0)


def _curves(points: Sequence[Cost]) -> Mapping[str, list[Cost]]:
    """Group points by estimator, in ascending order of steps; the largest errors first."""
    curves: dict[str, list[Cost]] = {}
    for point in sorted(points, key=lambda p: p.steps):
        curves.setdefault(point.estimator, []).append(point)
    return dict(sorted(curves.items(), key=lambda item: -item[1][-1].error))


def _entropy(canvas: Any, gaps: Sequence[Record], records: Sequence[Record]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes = canvas.subplots()
    axes.axhline(0.0, color="#9CA3AF", linewidth=0.8)
    names = _sets_of(gaps)
    for i, name in enumerate(names):
        colour, marker = SETS[i % len(SETS)]
        x, y = ([row[key] for row in gaps if row["set"] == name] for key in ("entropy_per_piece", "gap_per_piece"))
        axes.plot(
            x,
            y,
            linestyle="none",
            marker=marker,
            markersize=3.4,
            color=colour,
            alpha=0.6,
            markeredgewidth=0,
            zorder=3.0 - i / len(names),
            label=name,
        )
    axes.set_xlabel("entropy of segmentations, nats per piece")
    axes.set_ylabel("marginal gap, nats per piece")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    if len(names) > 1:
        canvas.legend(loc="outside lower center", ncols=ACROSS, handletextpad=0.2, columnspacing=1.2, markerscale=1.6)
    rho = next((r for r in records if r["name"] == "entropy_gap_rho" and r.get("set") == _whole(names)), None)
    if rho is not None:
        ends = "" if rho["low"] is None else f" [{rho['low']:.2f}, {rho['high']:.2f}]"
        all_sets = ", all sets" if len(names) > 1 else ""
        axes.set_title(f"Spearman's rho {rho['value']:.2f}{ends}{all_sets}", fontsize=9, color=QUIET)
    axes.grid()


def _sets_of(gaps: Sequence[Record]) -> list[str]:
    """Return the names of the sets of texts, in their order."""
    return list(dict.fromkeys(row["set"] for row in gaps))


def _whole(names: Sequence[str]) -> str | None:
    """Return the ``set`` of records of all documents together; None if there is one set."""
    return POOLED if len(names) > 1 else None


def _legend_height(gaps: Sequence[Record]) -> float:
    """Return the height of the legend of several sets below a figure, inches."""
    n = len(_sets_of(gaps))
    return 0.22 * -(-n // ACROSS) if n > 1 else 0.0
