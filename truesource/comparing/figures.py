"""The figure of a comparison: how far models are from the truth, and from the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from truesource.evaluation.comparing import ModelComparison
from truesource.evaluation.measures.bootstrap import Interval
from truesource.report.figures import MODEL, SECOND, TRUTH, figure, ratio_axis, to_svg


def comparison_figure(comparisons: Sequence[ModelComparison]) -> str:
    """Relative perplexities with intervals, seeds as dots, and differences to the baseline beside; one row each."""
    heights = [len(comparison.rows) + 1.6 for comparison in comparisons]
    with figure(9.4, 0.5 + 0.42 * sum(heights), "comparison") as drawn:
        panels = drawn.subplots(len(comparisons), 2, squeeze=False, height_ratios=heights, width_ratios=[1.25, 1.0])
        for (left, right), comparison in zip(panels, comparisons, strict=True):
            _relative_panel(left, comparison)
            _difference_panel(right, comparison)
            right.set_visible(bool(comparison.differences))
            for axes in (left, right):
                axes.set_ylim(len(comparison.rows) - 0.45, -0.55)
                axes.tick_params(axis="y", length=0, labelcolor="#1f2937")
                axes.spines["left"].set_visible(False)
                axes.grid(axis="x")
        return to_svg(drawn, "comparison", "Models compared with the truth and with a baseline")


def _relative_panel(axes: Any, comparison: ModelComparison) -> None:
    values = [1.0]
    axes.axvline(1.0, color=TRUTH, linewidth=1.5)
    for y, row in enumerate(comparison.rows):
        dots = [seed["relative_ppl"] for seed in row.by_seed]
        axes.plot(dots, [y + 0.24] * len(dots), "o", markersize=2.8, color=SECOND, alpha=0.75)
        values += [*dots, *_drawn(axes, row.measures["relative_ppl"], y, MODEL)]
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
    for found in comparison.differences:
        _drawn(axes, found.contrast.interval, places[found.model], MODEL)
    axes.plot([0.0], [places[comparison.baseline]], "D", markersize=5, color=TRUTH)
    axes.set_yticks(range(len(places)), [""] * len(places))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_xlabel(f"KL minus the KL of {comparison.baseline}, nats a token")


def _drawn(axes: Any, value: Interval, y: float, colour: str) -> list[float]:
    """Draw a point with its interval; the numbers that the axis must hold."""
    ends = [value.value if end is None else end for end in (value.low, value.high)]
    axes.plot(ends, [y, y], color=colour, linewidth=2.2, solid_capstyle="butt")
    axes.plot([value.value], [y], "o", markersize=6, color=colour)
    return ends
