"""Tables of a sweep, for the terminal and for its report."""

from __future__ import annotations

from typing import Any

from truesource.evaluation.measures.bootstrap import Interval
from truesource.evaluation.scaling.cells import TITLES
from truesource.grammar.support.printable import few_code
from truesource.report.table import Cell, ReportTable, TableRow, number_cell
from truesource.sweep.results import Sweep

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


def cells_table(sweep: Sweep) -> ReportTable:
    """A row for each cell."""
    return ReportTable(
        columns=COLUMNS,
        rows=[TableRow(_cell(row)) for row in sweep.rows],
        note="FLOPs: matrix products and convolutions, forward and backward; a multiply-add counts 2. N of 6ND:"
        " parameters in products.",
    )


def _cell(row: dict[str, Any]) -> list[Cell | str | None]:
    return [
        row["model"],
        number_cell(row["sentences"], ","),
        number_cell(row["seed"], "d"),
        number_cell(row["epochs"], ".3g"),
        number_cell(row["ppl"], ".2f"),
        number_cell(row["bound"], ".2f"),
        number_cell(row["relative_ppl"], ".3f"),
        interval(Interval(**row["measures"]["kl"])),
        number_cell(row["parameters"], ","),
        number_cell(row["parameters_without_embeddings"], ","),
        number_cell(row["tokens"], ","),
        Cell(f"{row['flops']:.3g}".replace("e+", "e"), score=(row["flops"], None, None)),
        number_cell(row["flops"] / row["flops_6nd"], ".2f"),
    ]


def laws_table(sweep: Sweep) -> ReportTable:
    """A row for each power law."""
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
    """A row for each law with its irreducible loss fitted too."""
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
    """The law over both sizes in words; None where none could be fitted."""
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
    """What the intervals of the laws account for."""
    replicated = {fit.scatter.replicated for fit in sweep.fits.axes}
    seeds = "other seeds and evaluation sentences"
    alone = "the scatter around the law and other evaluation sentences"
    if replicated == {True}:
        return seeds
    if replicated == {True, False}:
        return f"{seeds}; for laws over cells of one seed each, {alone}"
    return f"{alone}; the effect of the seed is unknown, as each cell has one seed"


def interval(value: Interval, spec: str = ".3f") -> Cell:
    """A value with its 95% interval, which few evaluation sentences do not have."""
    score = (value.value, value.low, value.high)
    if value.low is None or value.high is None:
        return Cell(f"{value.value:{spec}}", score=score, no_interval=few_code())
    return Cell(f"{value.value:{spec}}", (f"{value.low:{spec}}", f"{value.high:{spec}}"), score=score)
