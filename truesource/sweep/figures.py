"""Figures of a sweep: relative perplexity by corpus size, laws of the reducible loss, courses of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truesource.evaluation.scaling.cells import TITLES, Axis, groups_of
from truesource.evaluation.scaling.fits import AxisFit
from truesource.grammar.support.arrays import FloatArray
from truesource.report.figures import SERIES, TRUTH, figure, plain_log_axis, round_ticks, to_svg
from truesource.report.words import brief, listed
from truesource.sweep.results import Sweep
from truesource.sweep.tables import interval

PANELS: tuple[Axis, ...] = ("sentences", "parameters", "flops")
DOT = 5.0


def relative_figure(sweep: Sweep) -> str:
    """Relative perplexity against sentences: a dot a seed, a line through their geometric means, the truth at 1."""
    with figure(7.6, 4.0, "scalingrelative") as drawn:
        axes = drawn.subplots()
        for colour, (name, rows) in zip(_colours(), _by_model(sweep), strict=False):
            x = np.array([row["sentences"] for row in rows], dtype=np.float64)
            y = np.array([row["relative_ppl"] for row in rows])
            axes.plot(x, y, "o", color=colour, markersize=DOT, alpha=0.75)
            axes.plot(*_means(x, y), color=colour, label=name)
        axes.axhline(1.0, color=TRUTH, linestyle="--", linewidth=1.5, label="the truth")
        values = [row["relative_ppl"] for row in sweep.rows]
        _log(axes.set_xscale, axes.set_xlim, axes.xaxis, [row["sentences"] for row in sweep.rows])
        low, high = min(1.0, *values), max(values)
        axes.set_yscale("log")
        margin = max(1.02, (high / low) ** 0.04)
        axes.set_ylim(low / margin, high * margin)
        plain_log_axis(axes.yaxis, round_ticks(low / margin, high * margin))
        axes.set_xlabel("train sentences (optimiser steps are the same)")
        axes.set_ylabel("relative perplexity: model / truth")
        axes.grid(axis="y")
        drawn.legend(loc="outside upper center", ncols=4, handlelength=1.6, columnspacing=1.2)
        return to_svg(drawn, "scalingrelative", "Relative perplexity against train sentences")


def laws_figure(sweep: Sweep) -> str | None:
    """Reducible loss against what was varied, logarithms on both axes, with fitted laws and their bands.

    None where there is no law.
    """
    panels = [axis for axis in PANELS if any(fit.axis == axis for fit in sweep.fits.axes)]
    if not panels:
        return None
    with figure(min(9.4, 4.9 * len(panels)), 4.0, "scalinglaws") as drawn:
        for number, (axes, axis) in enumerate(
            zip(drawn.subplots(1, len(panels), squeeze=False)[0], panels, strict=True)
        ):
            fits = [fit for fit in sweep.fits.axes if fit.axis == axis]
            for colour, fit in zip(_colours(), fits, strict=False):
                _law(axes, fit, colour)
            ys = [y for fit in fits for y in (*fit.y, *fit.fit.law(fit.x))]
            _log(
                axes.set_xscale,
                axes.set_xlim,
                axes.xaxis,
                [x for fit in fits for x in fit.x],
                short=axis != "sentences",
            )
            _log(axes.set_yscale, axes.set_ylim, axes.yaxis, ys)
            axes.set_xlabel(TITLES[axis])
            if number == 0:
                axes.set_ylabel("reducible loss: KL, nats a token")
            axes.grid()
            axes.legend(
                title="exponent",
                title_fontsize=7.5,
                loc="upper center",
                bbox_to_anchor=(0.5, -0.2),
                fontsize=7.5,
                handlelength=1.2,
            )
        return to_svg(drawn, "scalinglaws", f"Reducible loss against {listed([TITLES[axis] for axis in panels])}")


def _law(axes: Any, fit: AxisFit, colour: str) -> None:
    grid = np.geomspace(fit.x.min(), fit.x.max(), 60)
    axes.plot(fit.x, fit.y, "o", color=colour, markersize=DOT, alpha=0.75)
    if fit.exponent.low is not None:
        axes.fill_between(grid, *fit.band(grid), color=colour, alpha=0.18, linewidth=0)
    label = f"{fit.held}: {interval(fit.exponent)}"
    axes.plot(grid, fit.fit.law(grid), color=colour, label=label)


def curves_figure(sweep: Sweep) -> str | None:
    """Reducible loss along training against FLOPs: a line a cell, coloured by its model; None without snapshots.

    The first seed of each setting is shown; the cells at their ends are dots.
    """
    if not any(row["curve"] for row in sweep.rows):
        return None
    with figure(7.6, 4.2, "scalingcurves") as drawn:
        axes = drawn.subplots()
        shown: list[tuple[float, float]] = []
        for colour, (name, rows) in zip(_colours(), _by_model(sweep), strict=False):
            sizes = sorted({row["sentences"] for row in rows})
            for i, size in enumerate(sizes):
                row = next(row for row in rows if row["sentences"] == size)
                end = (row["flops"], row["kl"])
                points = [(p["flops"], p["kl"]) for p in row["curve"] if p["flops"] > 0 and p["kl"] > 0.0]
                if row["kl"] > 0.0:
                    points.append(end)
                    axes.plot(*end, "o", color=colour, markersize=DOT)
                if not points:
                    continue
                shown += points
                strength = 0.35 + 0.65 * (i + 1) / len(sizes)
                label = name if i == len(sizes) - 1 else None
                axes.plot(*zip(*points, strict=True), color=colour, alpha=strength, linewidth=1.4, label=label)
        _log(axes.set_xscale, axes.set_xlim, axes.xaxis, [x for x, _ in shown], short=True)
        _log(axes.set_yscale, axes.set_ylim, axes.yaxis, [y for _, y in shown])
        axes.set_xlabel("FLOPs so far")
        axes.set_ylabel("reducible loss: KL, nats a token")
        axes.grid()
        drawn.legend(loc="outside upper center", ncols=4, handlelength=1.6, columnspacing=1.2)
        return to_svg(drawn, "scalingcurves", "Reducible loss along training against FLOPs")


def figures(sweep: Sweep) -> dict[str, str]:
    """All that can be drawn, by name."""
    if not sweep.rows:
        return {}
    made = {"relative_ppl": relative_figure(sweep), "laws": laws_figure(sweep), "curves": curves_figure(sweep)}
    return {name: svg for name, svg in made.items() if svg is not None}


def _colours() -> list[str]:
    return list(SERIES) * 8


def _by_model(sweep: Sweep) -> list[tuple[str, list[dict[str, Any]]]]:
    names = [row["model"] for row in sweep.rows]
    return [(names[rows[0]], [sweep.rows[i] for i in rows]) for rows in groups_of(names)]


def _means(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    values = np.unique(x)
    return values, np.array([np.exp(np.log(y[x == value]).mean()) for value in values])


def _log(scale: Any, limits: Any, axis: Any, values: Sequence[float], short: bool = False) -> None:
    """A logarithmic axis around positive values."""
    low, high = min(values), max(values)
    margin = max(1.08, (high / low) ** 0.05)
    low, high = low / margin, high * margin
    scale("log")
    limits(low, high)
    ticks = round_ticks(low, high, most=6)
    plain_log_axis(axis, ticks)
    if short:
        from matplotlib.ticker import FixedFormatter

        axis.set_major_formatter(FixedFormatter([brief(tick) for tick in ticks]))
    elif max(ticks) >= 1000:
        from matplotlib.ticker import FixedFormatter

        axis.set_major_formatter(FixedFormatter([brief(tick) if tick >= 1000 else f"{tick:g}" for tick in ticks]))
