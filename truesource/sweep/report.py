"""The page of a sweep."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from truesource.evaluation.core.signature import signature
from truesource.evaluation.scaling.cells import TITLES
from truesource.evaluation.scaling.fits import AxisFit
from truesource.grammar.support.files import write_text
from truesource.report.environment import render
from truesource.report.figures import standalone
from truesource.report.words import count, listed
from truesource.sweep.figures import figures
from truesource.sweep.results import Sweep
from truesource.sweep.tables import cells_table, joint_text, laws_table, unknown_table

BENT = 0.01  #: p-value of lack of fit below which points are on no power law


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
        laws=laws_table(sweep),
        unknown=unknown_table(sweep),
        joint=joint_text(sweep),
        cells=cells_table(sweep),
        signature=signature(sweep.rows[0]["parts"]),
    )
    write_text(folder / "report.html", page)
    return [*wrote, folder / "report.html"]


def answer(sweep: Sweep) -> list[str]:
    """What the sweep says, in a few sentences."""
    best = min(sweep.rows, key=lambda row: float(row["relative_ppl"]))
    worst = max(sweep.rows, key=lambda row: float(row["relative_ppl"]))
    sentences = [
        f"Relative perplexity goes from {worst['relative_ppl']:.2f} ({worst['model']},"
        f" {count(worst['sentences'], 'sentence')}) to {best['relative_ppl']:.2f} ({best['model']},"
        f" {count(best['sentences'], 'sentence')}); the truth has 1."
    ]
    shown = [fit for fit in sweep.fits.axes if fit.axis in ("sentences", "parameters")]
    for fit in shown:
        if is_straight(fit):
            factor = 1.0 - 2.0**-fit.exponent.value
            change = f"{factor:.0%} less" if factor >= 0.0 else f"{-factor:.0%} more"
            sentences.append(f"{fit.held}: twice the {TITLES[fit.axis]} give {change} reducible loss.")
    bent = [f"{TITLES[fit.axis]} ({fit.held})" for fit in shown if not is_straight(fit)]
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
    """Whether a power law is not rejected; without replicates it cannot be."""
    return fit.fit.lack_of_fit is None or fit.fit.lack_of_fit >= BENT
