"""The figure of learning curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from truesource.evaluation.show.figures import MODEL, SECOND, TRUTH, figure, plain_log_axis, round_ticks, to_svg
from truesource.evaluation.show.records import Record


def curve_figure(number: int, seeds: Sequence[Sequence[Record]], result: Record, *, bounded: bool = True) -> str | None:
    """Draw train and dev perplexity against tokens seen, with the exact bound; None without a curve.

    ``seeds`` has the metrics of each seed of the model; several curves are thin lines of one colour.
    A model of pieces has a perplexity per piece here, without a bound; the bound is also missing if
    evaluated and trained positions differ (``bounded`` false). If the training was
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
    with figure(4.8, 4.6 if relative else 3.2, salt) as canvas:
        axes, *below = canvas.subplots(
            1 + bool(relative), sharex=True, squeeze=False, height_ratios=[3, 1.6][: 1 + bool(relative)]
        )[:, 0]
        of_training: dict[str, object] = {"color": MODEL, "alpha": 0.55, "linewidth": 1.4 * thin}
        for curves, style, label in (
            (train, of_training, "training batches"),
            (dev, {"color": SECOND, "linewidth": 1.8 * thin}, "dev sentences"),
        ):
            for i, curve in enumerate(curves):
                x, y = zip(*curve, strict=True)
                named = label if i == 0 else None  # only once in the legend
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
        canvas.legend(loc="outside upper center", ncols=3, handlelength=1.6, columnspacing=1.2)
        return to_svg(canvas, salt, f"Training curve of {result['model']}")


def _points(seeds: Sequence[Sequence[Record]], x_name: str, name: str) -> list[list[tuple[float, float]]]:
    """Return the curve of each seed that has one."""
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


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5)


def _short(value: float, _: float = 0.0) -> str:
    """Format 1500000 as ``1.5M``."""
    for limit, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.6g}{unit}"
    return f"{value:.6g}"
