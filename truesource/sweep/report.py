"""The page of a sweep, and its numbers as rows of text."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from truesource.evaluation.core.signature import signature
from truesource.evaluation.measures.bootstrap import Interval
from truesource.evaluation.scaling.cells import TITLES
from truesource.evaluation.scaling.fits import AxisFit
from truesource.grammar.files import write_text
from truesource.report.environment import render
from truesource.report.figures import standalone
from truesource.report.words import NONE, count, listed
from truesource.sweep.figures import figures
from truesource.sweep.results import Sweep

BENT = 0.01  #: p-value of lack of fit below which points are on no power law
HEADS = (
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


def build_scaling_report(sweep: Sweep, folder: Path) -> list[Path]:
    """Write ``report.html`` and ``figures/*.svg`` of a sweep; the files written."""
    drawn = figures(sweep)
    wrote = []
    for name, svg in drawn.items():
        wrote.append(folder / "figures" / f"{name}.svg")
        write_text(wrote[-1], standalone(svg))
    page = render(
        Path(__file__).with_name("report.html.j2"),
        folder,
        sweep=sweep,
        version=version("truesource"),
        answer=answer(sweep),
        figures={name: drawn.get(name) for name in ("relative_ppl", "laws", "curves")},
        fits=fit_rows(sweep),
        unknown=unknown_rows(sweep),
        joint=joint_text(sweep),
        spread=spread_text(sweep),
        table={"heads": HEADS, "rows": cell_rows(sweep)},
        signature=signature(sweep.rows[0]["parts"]),
    )
    write_text(folder / "report.html", page)
    return [*wrote, folder / "report.html"]


def cell_rows(sweep: Sweep) -> list[list[str]]:
    """One row a cell, as in `HEADS`."""
    return [
        [
            row["model"],
            f"{row['sentences']:,}",
            str(row["seed"]),
            f"{row['epochs']:.3g}",
            f"{row['ppl']:.2f}",
            f"{row['bound']:.2f}",
            f"{row['relative_ppl']:.3f}",
            _interval(Interval(**row["measures"]["kl"])),
            f"{row['parameters']:,}",
            f"{row['parameters_without_embeddings']:,}",
            f"{row['tokens']:,}",
            f"{row['flops']:.3g}".replace("e+", "e"),
            f"{row['flops'] / row['flops_6nd']:.2f}",
        ]
        for row in sweep.rows
    ]


def fit_rows(sweep: Sweep) -> list[list[str]]:
    """Over, held, exponent, coefficient, R2, residual and lack of fit of each law."""
    return [
        [
            TITLES[fit.axis],
            fit.held,
            _interval(fit.exponent),
            _coefficient(fit.coefficient),
            f"{fit.fit.r2:.3f}",
            f"{fit.fit.residual:.1%}",
            NONE if fit.fit.lack_of_fit is None else f"{fit.fit.lack_of_fit:.2g}",
        ]
        for fit in sweep.fits.axes
    ]


def unknown_rows(sweep: Sweep) -> list[list[str]]:
    """Over, held, fitted floor, true floor, error and exponent, where the floor is fitted too."""
    return [
        [
            TITLES[fit.axis],
            fit.held,
            "not found" if fit.unknown.fit.at_bound else _interval(fit.unknown.floor),
            f"{fit.unknown.truth:.3f}",
            NONE if fit.unknown.fit.at_bound else _interval(fit.unknown.error),
            NONE if fit.unknown.fit.at_bound else _interval(fit.unknown.exponent),
        ]
        for fit in sweep.fits.axes
        if fit.unknown is not None
    ]


def joint_text(sweep: Sweep) -> str | None:
    """The law over both sizes in words; None where none could be fitted."""
    joint = sweep.fits.joint
    if joint is None:
        return None
    if joint.at_bound:
        values = "not found: these cells do not determine its parameters"
    else:
        exponents = ", ".join(f"{name} {_interval(joint.intervals[name])}" for name in ("alpha", "beta"))
        sizes = ", ".join(f"{name} {_coefficient(joint.intervals[name])}" for name in ("A", "B"))
        values = f"{exponents}, {sizes}"
    return f"{values}, R2 {joint.fit.r2:.3f}, residual {joint.fit.residual:.1%}"


def answer(sweep: Sweep) -> list[str]:
    """What the sweep says, in a few sentences."""
    best = min(sweep.rows, key=lambda row: float(row["relative_ppl"]))
    worst = max(sweep.rows, key=lambda row: float(row["relative_ppl"]))
    found = [
        f"Relative perplexity goes from {worst['relative_ppl']:.2f} ({worst['model']},"
        f" {count(worst['sentences'], 'sentence')}) to {best['relative_ppl']:.2f} ({best['model']},"
        f" {count(best['sentences'], 'sentence')}); the truth is at 1."
    ]
    shown = [fit for fit in sweep.fits.axes if fit.axis in ("sentences", "parameters")]
    for fit in shown:
        if is_straight(fit):
            factor = 1.0 - 2.0**-fit.exponent.value
            change = f"{factor:.0%} less" if factor >= 0.0 else f"{-factor:.0%} more"
            found.append(f"{fit.held}: twice the {TITLES[fit.axis]}, {change} reducible loss.")
    bent = [f"{TITLES[fit.axis]} ({fit.held})" for fit in shown if not is_straight(fit)]
    if bent:
        found.append(f"No power law holds over {listed(bent)}: lack of fit, p < {BENT:g}.")
    unknown = [fit.unknown for fit in sweep.fits.axes if fit.unknown is not None and not fit.unknown.fit.at_bound]
    if unknown:
        errors = [f"{fit.error.value:+.2f}" for fit in unknown]
        found.append(
            f"If the truth were not known, the fitted irreducible loss would be off by {listed(errors)} nats a token."
        )
    return found


def is_straight(fit: AxisFit) -> bool:
    """Whether nothing speaks against a power law; without replicates nothing can."""
    return fit.fit.lack_of_fit is None or fit.fit.lack_of_fit >= BENT


def spread_text(sweep: Sweep) -> str:
    """What the intervals of the laws hold."""
    replicated = {fit.scatter.replicated for fit in sweep.fits.axes}
    seeds = "other seeds and evaluation sentences"
    alone = "the scatter around the law and other evaluation sentences"
    if replicated == {True}:
        return seeds
    if replicated == {True, False}:
        return f"{seeds}; for laws over cells of one seed each, {alone}"
    return f"{alone}; with one seed of each cell nothing is known of other seeds"


def _coefficient(value: Interval) -> str:
    return f"{value.value:.3g} [{value.low:.3g}, {value.high:.3g}]"


def _interval(value: Interval) -> str:
    return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
