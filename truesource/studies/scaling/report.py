"""The page of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from truesource.evaluation.core.signature import signature
from truesource.evaluation.core.windows import window_name
from truesource.evaluation.measures.bootstrap import Interval
from truesource.evaluation.scaling.cells import TITLES, Axis, groups_of
from truesource.evaluation.scaling.fits import AxisFit
from truesource.evaluation.show.figures import (
    QUIET,
    SERIES,
    TRUTH,
    figure,
    plain_log_axis,
    round_ticks,
    standalone,
    to_svg,
)
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell
from truesource.evaluation.show.words import brief, count
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.atomic_files import remove_leftovers_in, write_json, write_text
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.printable import few_code, listed
from truesource.report.environment import render
from truesource.studies.scaling.results import CellRecord, Sweep

PANELS: tuple[Axis, ...] = ("sentences", "parameters", "flops")
DOT = 5.0
COLUMNS = (
    "model",
    "sentences",
    "seed",
    "epochs",
    "PPL",
    "bound",
    "relative PPL",
    "KL, nats",
    "parameters",
    "without emb.",
    "tokens seen",
    "FLOPs",
    "/ 6ND",
)
BENT = 0.01  #: p-value of lack of fit below which points are on no power law


def relative_figure(sweep: Sweep) -> str:
    """Draw relative perplexity against sentences: a dot a seed, a line through geometric means, the truth at 1."""
    with figure(7.6, 4.0, "scalingrelative") as fig:
        axes = fig.subplots()
        for colour, (name, rows) in zip(_colours(), _by_model(sweep), strict=False):
            x = np.array([row["sentences"] for row in rows], dtype=np.float64)
            y = np.array([_relative(row) for row in rows])
            axes.plot(x, y, "o", color=colour, markersize=DOT, alpha=0.75)
            axes.plot(*_means(x, y), color=colour, label=name)
        axes.axhline(1.0, color=TRUTH, linestyle="--", linewidth=1.5, label="the truth")
        for seen, line in enumerate(sweep.lines):
            axes.axhline(line["relative_ppl"], color=QUIET, linestyle=":", linewidth=1.0)
            at, of_axis = (1.0, line["relative_ppl"]), axes.get_yaxis_transform()
            axes.annotate(window_name(seen), at, (4, -3), of_axis, "offset points", fontsize=8, color=QUIET)
        values = [*map(_relative, sweep.rows), *(line["relative_ppl"] for line in sweep.lines)]
        _log(axes.set_xscale, axes.set_xlim, axes.xaxis, [row["sentences"] for row in sweep.rows])
        low, high = min(1.0, *values), max(values)
        axes.set_yscale("log")
        margin = max(1.02, (high / low) ** 0.04)
        axes.set_ylim(low / margin, high * margin)
        plain_log_axis(axes.yaxis, round_ticks(low / margin, high * margin))
        axes.set_xlabel("train sentences (optimiser steps are the same)")
        axes.set_ylabel("relative perplexity: model / truth")
        axes.grid(axis="y")
        fig.legend(loc="outside upper center", ncols=4, handlelength=1.6, columnspacing=1.2)
        return to_svg(fig, "scalingrelative", "Relative perplexity against train sentences")


def laws_figure(sweep: Sweep) -> str | None:
    """Draw the reducible loss against what was varied, on logarithmic axes, with fitted laws and their bands.

    Return None without laws.
    """
    panels = [axis for axis in PANELS if any(fit.axis == axis for fit in sweep.fits.axes)]
    if not panels:
        return None
    with figure(min(9.4, 4.9 * len(panels)), 4.0, "scalinglaws") as fig:
        for number, (axes, axis) in enumerate(zip(fig.subplots(1, len(panels), squeeze=False)[0], panels, strict=True)):
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
        return to_svg(fig, "scalinglaws", f"Reducible loss against {listed([TITLES[axis] for axis in panels])}")


def _law(axes: Any, fit: AxisFit, colour: str) -> None:
    grid = np.geomspace(fit.x.min(), fit.x.max(), 60)
    axes.plot(fit.x, fit.y, "o", color=colour, markersize=DOT, alpha=0.75)
    if fit.exponent.low is not None:
        axes.fill_between(grid, *fit.band(grid), color=colour, alpha=0.18, linewidth=0)
    label = f"{fit.held}: {interval(fit.exponent)}"
    axes.plot(grid, fit.fit.law(grid), color=colour, label=label)


def curves_figure(sweep: Sweep) -> str | None:
    """Draw the reducible loss along training against FLOPs: a line a cell, coloured by model; None without snapshots.

    The first seed of each setting is shown; the cells at their ends are dots.
    """
    if not any(row["curve"] for row in sweep.rows):
        return None
    with figure(7.6, 4.2, "scalingcurves") as fig:
        axes = fig.subplots()
        drawn_points: list[tuple[float, float]] = []
        for colour, (name, rows) in zip(_colours(), _by_model(sweep), strict=False):
            sizes = sorted({row["sentences"] for row in rows})
            for i, size in enumerate(sizes):
                row = next(row for row in rows if row["sentences"] == size)
                end = (row["cost"]["flops"], row["measures"]["kl"]["value"])
                points = [(p["flops"], p["kl"]) for p in row["curve"] if p["flops"] > 0 and p["kl"] > 0.0]
                if end[1] > 0.0:
                    points.append(end)
                    axes.plot(*end, "o", color=colour, markersize=DOT)
                if not points:
                    continue
                drawn_points += points
                strength = 0.35 + 0.65 * (i + 1) / len(sizes)
                label = name if i == len(sizes) - 1 else None
                axes.plot(*zip(*points, strict=True), color=colour, alpha=strength, linewidth=1.4, label=label)
        _log(axes.set_xscale, axes.set_xlim, axes.xaxis, [x for x, _ in drawn_points], short=True)
        _log(axes.set_yscale, axes.set_ylim, axes.yaxis, [y for _, y in drawn_points])
        axes.set_xlabel("FLOPs so far")
        axes.set_ylabel("reducible loss: KL, nats a token")
        axes.grid()
        fig.legend(loc="outside upper center", ncols=4, handlelength=1.6, columnspacing=1.2)
        return to_svg(fig, "scalingcurves", "Reducible loss along training against FLOPs")


def figures(sweep: Sweep) -> dict[str, str]:
    """Return all available figures, by name."""
    if not sweep.rows:
        return {}
    svgs = {"relative_ppl": relative_figure(sweep), "laws": laws_figure(sweep), "curves": curves_figure(sweep)}
    return {name: svg for name, svg in svgs.items() if svg is not None}


def _colours() -> list[str]:
    return list(SERIES) * 8


def _by_model(sweep: Sweep) -> list[tuple[str, list[CellRecord]]]:
    names = [row["model"] for row in sweep.rows]
    return [(names[rows[0]], [sweep.rows[i] for i in rows]) for rows in groups_of(names)]


def _means(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    values = np.unique(x)
    return values, np.array([np.exp(np.log(y[x == value]).mean()) for value in values])


def _log(scale: Any, limits: Any, axis: Any, values: Sequence[float], short: bool = False) -> None:
    """Set a logarithmic axis around positive values."""
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


def cells_table(sweep: Sweep) -> ReportTable:
    """Return a row for each cell."""
    return ReportTable(
        columns=COLUMNS,
        rows=[TableRow(_cell(row)) for row in sweep.rows],
        note="FLOPs: matrix products and convolutions, forward and backward; a multiply-add counts 2. N of 6ND:"
        " parameters in products.",
    )


def _relative(row: CellRecord) -> float:
    return row["measures"]["relative_ppl"]["value"]


def _cell(row: CellRecord) -> list[Cell | str | None]:
    cost, measures = row["cost"], row["measures"]
    return [
        row["model"],
        number_cell(row["sentences"], ","),
        number_cell(row["seed"], "d"),
        number_cell(cost["epochs"], ".3g"),
        number_cell(measures["ppl"]["value"], ".2f"),
        number_cell(measures["bound"]["value"], ".2f"),
        number_cell(_relative(row), ".3f"),
        interval(Interval(**measures["kl"])),
        number_cell(cost["parameters"]["total"], ","),
        number_cell(cost["parameters"]["without_embeddings"], ","),
        number_cell(cost["tokens"], ","),
        Cell(f"{cost['flops']:.3g}".replace("e+", "e"), score=(cost["flops"], None, None)),
        number_cell(cost["flops"] / cost["rule"], ".2f"),
    ]


def laws_table(sweep: Sweep) -> ReportTable:
    """Return a row for each power law."""
    return ReportTable(
        title="Reducible loss KL(x) = A x^-exponent, nats per token",
        columns=("over", "fixed", "exponent", "A", "R2", "residual", "lack of fit, p"),
        text=(0, 1),
        rows=[
            TableRow(
                [
                    TITLES[fit.axis],
                    fit.held,
                    interval(fit.exponent),
                    interval(fit.coefficient, ".3g"),
                    number_cell(fit.fit.r2, ".3f"),
                    number_cell(fit.fit.residual, ".1%"),
                    number_cell(fit.fit.lack_of_fit, ".2g"),
                ]
            )
            for fit in sweep.fits.axes
        ],
        note=f"95% intervals from {spread_text(sweep)}.",
    )


def unknown_table(sweep: Sweep) -> ReportTable:
    """Return a row for each law with its irreducible loss fitted too."""
    return ReportTable(
        title="The same with an unknown irreducible loss E: E + A x^-exponent",
        columns=("over", "fixed", "fitted E", "true E", "error", "exponent"),
        text=(0, 1),
        rows=[
            TableRow(
                [
                    TITLES[fit.axis],
                    fit.held,
                    "not found" if fit.unknown.fit.at_bound else interval(fit.unknown.floor),
                    number_cell(fit.unknown.truth, ".3f"),
                    None if fit.unknown.fit.at_bound else interval(fit.unknown.error),
                    None if fit.unknown.fit.at_bound else interval(fit.unknown.exponent),
                ]
            )
            for fit in sweep.fits.axes
            if fit.unknown is not None
        ],
    )


def joint_text(sweep: Sweep) -> str | None:
    """Return the law over both sizes in words; None if none could be fitted."""
    joint = sweep.fits.joint
    if joint is None:
        return None
    if joint.at_bound:
        values = "not found: these cells do not determine its parameters"
    else:
        exponents = ", ".join(f"{name} {interval(joint.intervals[name])}" for name in ("alpha", "beta"))
        sizes = ", ".join(f"{name} {interval(joint.intervals[name], '.3g')}" for name in ("A", "B"))
        values = f"{exponents}, {sizes}"
    return f"{values}, R2 {joint.fit.r2:.3f}, residual {joint.fit.residual:.1%}"


def spread_text(sweep: Sweep) -> str:
    """Return a sentence on what the intervals of the laws account for."""
    replicated = {fit.scatter.replicated for fit in sweep.fits.axes}
    seeds = "other seeds and evaluation sentences"
    alone = "the scatter around the law and other evaluation sentences"
    if replicated == {True}:
        return seeds
    if replicated == {True, False}:
        return f"{seeds}; for laws over cells of one seed each, {alone}"
    return f"{alone}; the effect of the seed is unknown, as each cell has one seed"


def interval(value: Interval, spec: str = ".3f") -> Cell:
    """Return a value with its 95% interval, if there are enough evaluation sentences."""
    score = (value.value, value.low, value.high)
    if value.low is None or value.high is None:
        return Cell(f"{value.value:{spec}}", score=score, no_interval=few_code())
    return Cell(f"{value.value:{spec}}", (f"{value.low:{spec}}", f"{value.high:{spec}}"), score=score)


def write_results(sweep: Sweep, folder: Path) -> Path:
    """Write ``scaling.json``, the report and its figures; return the path of the report.

    Raises:
        InputError: no cell is finished.
    """
    if not sweep.rows:
        raise InputError("no cell of this sweep is finished; name its configuration to train the cells", folder)
    with exclusive(folder, wait=True):  # of several jobs that end together, one writes after the other
        for place in (folder, folder / "figures"):
            remove_leftovers_in(place, deep=False)
        write_json(folder / "scaling.json", sweep.records())
        return build_scaling_report(sweep, folder)[-1]


def build_scaling_report(sweep: Sweep, folder: Path) -> list[Path]:
    """Write ``report.html`` and ``figures/*.svg`` of a sweep; return the written files."""
    svgs = figures(sweep)
    wrote = []
    for name, svg in svgs.items():
        wrote.append(folder / "figures" / f"{name}.svg")
        write_text(wrote[-1], standalone(svg))
    page = render(
        Path(__file__).with_name("report.html.j2"),
        folder,
        sweep=sweep,
        version=version("truesource"),
        answer=answer(sweep),
        figures={name: svgs.get(name) for name in ("relative_ppl", "laws", "curves")},
        laws=laws_table(sweep),
        unknown=unknown_table(sweep),
        joint=joint_text(sweep),
        cells=cells_table(sweep),
        signature=signature(sweep.rows[0]["parts"]),
    )
    write_text(folder / "report.html", page)
    return [*wrote, folder / "report.html"]


def answer(sweep: Sweep) -> list[str]:
    """Return the answer of the sweep, in a few sentences."""
    best, worst = min(sweep.rows, key=_relative), max(sweep.rows, key=_relative)
    sentences = [
        f"Relative perplexity goes from {_relative(worst):.2f} ({worst['model']},"
        f" {count(worst['sentences'], 'sentence')}) to {_relative(best):.2f} ({best['model']},"
        f" {count(best['sentences'], 'sentence')}); the truth has 1."
    ]
    size_fits = [fit for fit in sweep.fits.axes if fit.axis in ("sentences", "parameters")]
    for fit in size_fits:
        if is_straight(fit):
            factor = 1.0 - 2.0**-fit.exponent.value
            change = f"{factor:.0%} less" if factor >= 0.0 else f"{-factor:.0%} more"
            sentences.append(f"{fit.held}: twice the {TITLES[fit.axis]} give {change} reducible loss.")
    bent = [f"{TITLES[fit.axis]} ({fit.held})" for fit in size_fits if not is_straight(fit)]
    if bent:
        sentences.append(f"The points are not on a power law over {listed(bent)} (lack of fit, p < {BENT:g}).")
    unknown = [fit.unknown for fit in sweep.fits.axes if fit.unknown is not None and not fit.unknown.fit.at_bound]
    if unknown:
        errors = [f"{fit.error.value:+.2f}" for fit in unknown]
        sentences.append(
            f"With an unknown truth, the fitted irreducible loss would be wrong by {listed(errors)} nats per token."
        )
    return sentences


def is_straight(fit: AxisFit) -> bool:
    """Return True if a power law is not rejected; without replicates it cannot be rejected."""
    return fit.fit.lack_of_fit is None or fit.fit.lack_of_fit >= BENT
