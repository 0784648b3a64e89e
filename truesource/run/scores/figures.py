"""Figures of the models: training curves, intervals of relative perplexity, log-probability scatter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from truesource.evaluation.show.figures import MODEL, QUIET, TRUTH, figure, ratio_axis, to_svg
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.words import partial
from truesource.grammar.support.arrays import FloatArray

SHADES = 48  #: number of shades of densities; with more, the colour bar would be an image


def forest_figure(results: Sequence[Record], marks: Mapping[str, float] | None = None) -> str:
    """Draw relative perplexities with 95% intervals, the line at 1, and lines of other predictors by name."""
    rows = list(results)
    intervals = [
        [float(row.get(f"relative_ppl_{end}") or row["relative_ppl"]) for end in ("low", "high")] for row in rows
    ]
    ends = [end for interval in intervals for end in interval]
    ends += [seed["relative_ppl"] for row in rows for seed in row.get("replicates", ())]
    free = [row["bound_unconditioned"] / row["bound"] for row in rows if _has_free_bound(row)]
    lines = dict(marks or {})
    low, high = min([1.0, *ends]), max([1.0, *ends, *free, *lines.values()])
    with figure(9.4, 0.9 + 0.42 * len(rows) + 0.25 * bool(lines), "forest") as canvas:
        axes = canvas.subplots()
        axes.axvline(1.0, color=TRUTH, linewidth=1.5)
        for name, at in lines.items():
            axes.axvline(at, color=QUIET, linewidth=1.0, linestyle=":")
            of_axis = axes.get_xaxis_transform()
            axes.annotate(name, (at, 1.0), (0, 3), of_axis, "offset points", fontsize=8, color=QUIET, ha="center")
        for y, row in enumerate(rows):
            oracle = row["model"] == "oracle"
            value = row["relative_ppl"]
            colour = TRUTH if oracle else MODEL
            axes.plot(intervals[y], [y, y], color=colour, linewidth=2.4, solid_capstyle="butt")
            axes.plot([value], [y], marker="D" if oracle else "o", markersize=6.5, color=colour, linestyle="none")
            seeds = [seed["relative_ppl"] for seed in row.get("replicates", ())]
            if seeds:
                axes.plot(seeds, [y] * len(seeds), marker="|", markersize=11, color=QUIET, linestyle="none")
            if oracle and _has_free_bound(row):
                at = row["bound_unconditioned"] / row["bound"]
                axes.plot([at], [y], marker="|", markersize=13, markeredgewidth=2, color=QUIET, linestyle="none")
                near = at < (low + high) / 2
                axes.annotate(
                    "the grammar without the length condition",
                    (at, y),
                    (7 if near else -7, 0),
                    textcoords="offset points",
                    ha="left" if near else "right",
                    va="center",
                    fontsize=8.5,
                    color=QUIET,
                )
        axes.set_yticks(range(len(rows)), [_row_name(row) for row in rows])
        axes.tick_params(axis="y", length=0, labelcolor="#1f2937")
        axes.set_ylim(len(rows) - 0.45, -0.55)
        ratio_axis(axes, low, high)
        axes.set_xlabel("relative perplexity: model / truth, with 95% interval (1 is perfect)")
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        return to_svg(canvas, "forest", "Relative perplexity of the models with intervals")


def _row_name(row: Record) -> str:
    few = f", {row['sentences']:,} sentences" if partial(row) else ""
    seeds = f", {len(row['replicates'])} seeds" if "replicates" in row else ""
    return f"{row['model']} ({row['objective']}{seeds}{few})"


def scatter_figure(number: int, name: str, model: FloatArray, oracle: FloatArray) -> str:
    """Draw the density of (true, model) log probability pairs with the diagonal, equal axes."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.ticker import MaxNLocator

    low = math.floor(float(min(model.min(), oracle.min())))
    salt = f"scatter{number}"
    shades = LinearSegmentedColormap.from_list("density", ["#D6E6F2", "#5A9BC8", MODEL, "#0B2545"], SHADES)
    with figure(4.8, 4.1, salt) as canvas:
        axes = canvas.subplots()
        extent = (low, 0.0, low, 0.0)
        cells = axes.hexbin(
            oracle, model, gridsize=38, extent=extent, norm=LogNorm(vmin=1), mincnt=1, cmap=shades, linewidths=0
        )
        axes.plot([low, 0], [low, 0], color=TRUTH, linewidth=1.3)
        axes.set_xlim(low, 0)
        axes.set_ylim(low, 0)
        axes.set_aspect("equal")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("truth: ln P(token | context), nats")
        axes.set_ylabel("model: ln Q(token | context), nats")
        bar = canvas.colorbar(cells, ax=axes, shrink=0.85)
        bar.set_label("tokens per cell (log scale)")
        bar.outline.set_linewidth(0.5)
        return to_svg(canvas, salt, f"Log probabilities of {name} against the truth")


def _has_free_bound(row: Record) -> bool:
    """Return True if the bound without the length condition differs visibly from the one with it."""
    free = row.get("bound_unconditioned")
    return free is not None and abs(free / row["bound"] - 1.0) > 1e-6
