"""Figures of the models: training curves, intervals of relative perplexity, log-probability scatter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from truesource.evaluation.show.figures import (
    MODEL,
    QUIET,
    SECOND,
    TRUTH,
    figure,
    plain_log_axis,
    ratio_axis,
    round_ticks,
    to_svg,
)
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.words import partial
from truesource.grammar.support.arrays import FloatArray

SHADES = 48  #: of densities; with more of them, the bar beside them would be an image


def curve_figure(number: int, seeds: Sequence[Sequence[Record]], result: Record, *, bounded: bool = True) -> str | None:
    """Perplexity on train and dev sentences against tokens seen, with the exact bound; None where there is no curve.

    ``seeds`` has the metrics of each seed of the model; the curves of several are thin lines of one colour.
    A model of pieces of words has a perplexity of pieces here, for which there is no bound; nor is there one where
    other positions were evaluated than those trained on (``bounded`` false). Where the training was
    compared with the truth, a second panel has relative perplexity.
    """
    x_name = "tokens" if all(row.get("tokens") is not None for metrics in seeds for row in metrics) else "step"
    train, dev = _points(seeds, x_name, "loss"), _points(seeds, x_name, "dev_loss")
    if max(map(len, [*train, *dev]), default=0) < 2:
        return None
    pieces = (result.get("tokenizer") or "word") != "word"
    values = [math.exp(y) for curve in train + dev for _, y in curve]
    values += [result["bound"]] if bounded and not pieces else []
    salt = f"curve{number}"
    thin = 1.0 if len(seeds) == 1 else 0.6
    dot = "o" if len(values) <= 100 and len(seeds) == 1 else None
    relative = _points(seeds, x_name, "relative_ppl")
    with figure(4.8, 4.6 if relative else 3.2, salt) as drawn:
        axes, *below = drawn.subplots(
            1 + bool(relative), sharex=True, squeeze=False, height_ratios=[3, 1.6][: 1 + bool(relative)]
        )[:, 0]
        of_training: dict[str, Any] = {"color": MODEL, "alpha": 0.55, "linewidth": 1.4 * thin}
        for curves, style, label in (
            (train, of_training, "training batches"),
            (dev, {"color": SECOND, "linewidth": 1.8 * thin}, "dev sentences"),
        ):
            for i, curve in enumerate(curves):
                x, y = zip(*curve, strict=True)
                named = label if i == 0 else None  # once in the legend
                axes.plot(x, [math.exp(loss) for loss in y], marker=dot, markersize=2.4, label=named, **style)
        if bounded and not pieces:
            bound = f"exact bound {result['bound']:.2f}"
            axes.axhline(result["bound"], color=TRUTH, linestyle="--", linewidth=1.5, label=bound)
        low, high = 0.9 * min(values), 1.1 * max(values)
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        plain_log_axis(axes.yaxis, round_ticks(low, high))
        for panel in below:
            _relative_panel(panel, relative, dot, thin)
        lowest = below[-1] if below else axes
        lowest.set_xlim(left=0)
        lowest.xaxis.set_major_locator(_few_ticks())
        lowest.xaxis.set_major_formatter(_short)
        lowest.set_xlabel("tokens seen in training" if x_name == "tokens" else "training steps")
        name = "pseudo-perplexity" if result["objective"] == "masked" else "perplexity"
        axes.set_ylabel(f"{name} of a piece" if pieces else name)
        axes.grid(axis="y")
        drawn.legend(loc="outside upper center", ncols=3, handlelength=1.6, columnspacing=1.2)
        return to_svg(drawn, salt, f"Training curve of {result['model']}")


def _points(seeds: Sequence[Sequence[Record]], x_name: str, name: str) -> list[list[tuple[float, float]]]:
    """The curve of each seed that has one."""
    curves = [[(row[x_name], row[name]) for row in metrics if row.get(name) is not None] for metrics in seeds]
    return [curve for curve in curves if curve]


def _relative_panel(axes: Any, curves: Sequence[Sequence[tuple[float, float]]], dot: str | None, thin: float) -> None:
    values = [y for curve in curves for _, y in curve]
    low, high = 0.97 * min(1.0, *values), 1.1 * max(1.0, *values)
    for curve in curves:
        axes.plot(*zip(*curve, strict=True), color=SECOND, linewidth=1.8 * thin, marker=dot, markersize=2.4)
    axes.axhline(1.0, color=TRUTH, linestyle="--", linewidth=1.5)
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    plain_log_axis(axes.yaxis, round_ticks(low, high))
    axes.set_ylabel("model / truth")
    axes.grid(axis="y")


def forest_figure(results: Sequence[Record], marks: Mapping[str, float] | None = None) -> str:
    """Relative perplexity of each row with its 95% interval, the line at 1, and lines of other predictors by name."""
    rows = list(results)
    intervals = [
        [float(row.get(f"relative_ppl_{end}") or row["relative_ppl"]) for end in ("low", "high")] for row in rows
    ]
    ends = [end for interval in intervals for end in interval]
    ends += [seed["relative_ppl"] for row in rows for seed in row.get("replicates", ())]
    free = [row["bound_unconditioned"] / row["bound"] for row in rows if _has_free_bound(row)]
    lines = dict(marks or {})
    low, high = min([1.0, *ends]), max([1.0, *ends, *free, *lines.values()])
    with figure(9.4, 0.9 + 0.42 * len(rows) + 0.25 * bool(lines), "forest") as drawn:
        axes = drawn.subplots()
        axes.axvline(1.0, color=TRUTH, linewidth=1.5)
        for name, at in lines.items():
            axes.axvline(at, color=QUIET, linewidth=1.0, linestyle=":")
            place: dict[str, Any] = {
                "xycoords": axes.get_xaxis_transform(),
                "textcoords": "offset points",
                "ha": "center",
            }
            axes.annotate(name, (at, 1.0), (0, 3), fontsize=8, color=QUIET, **place)
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
                    "the grammar, if one forgets the corpus's lengths",
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
        return to_svg(drawn, "forest", "Relative perplexity of the models with intervals")


def _row_name(row: Record) -> str:
    few = f", {row['sentences']:,} sentences" if partial(row) else ""
    seeds = f", {len(row['replicates'])} seeds" if "replicates" in row else ""
    return f"{row['model']} ({row['objective']}{seeds}{few})"


def scatter_figure(number: int, name: str, model: FloatArray, oracle: FloatArray) -> str:
    """Density of (true, model) log probability pairs with the diagonal, equal axes."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.ticker import MaxNLocator

    low = math.floor(float(min(model.min(), oracle.min())))
    salt = f"scatter{number}"
    shades = LinearSegmentedColormap.from_list("density", ["#D6E6F2", "#5A9BC8", MODEL, "#0B2545"], SHADES)
    with figure(4.8, 4.1, salt) as drawn:
        axes = drawn.subplots()
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
        bar = drawn.colorbar(cells, ax=axes, shrink=0.85)
        bar.set_label("tokens per cell (log scale)")
        bar.outline.set_linewidth(0.5)
        return to_svg(drawn, salt, f"Log probabilities of {name} against the truth")


def _has_free_bound(row: Record) -> bool:
    """True if the bound without the length condition differs visibly from the one with it."""
    free = row.get("bound_unconditioned")
    return free is not None and abs(free / row["bound"] - 1.0) > 1e-6


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5)


def _short(value: float, _: float = 0.0) -> str:
    """1500000 as ``1.5M``."""
    for limit, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.6g}{unit}"
    return f"{value:.6g}"
