"""The section on training."""

from __future__ import annotations

from pathlib import Path

from truesource.evaluation.show.records import Record
from truesource.report.finished_run import FinishedRun, Part, whole_sentences
from truesource.run.scores.curve_figure import curve_figure


def section(run: FinishedRun) -> Part:
    """Build the section with the training curve of each model."""
    loaded = [(row["model"], row["loaded"]) for row in [*run.models, *run.unscored] if row["loaded"] is not None]
    content = {"curves": _curves(run), "bounded": whole_sentences(run), "loaded": loaded}
    return Part("training", "Training", Path(__file__).with_name("section.html.j2"), content)


def _curves(run: FinishedRun) -> list[tuple[Record, str]]:
    curves = []
    for number, row in enumerate(run.models):
        seeds = [run.metrics.get(seed["model"], ()) for seed in row.get("replicates", (row,))]
        result = {**row, "bound": run.own_bound(row)}
        figure = curve_figure(number, seeds, result, bounded=whole_sentences(run))
        if figure is not None:
            curves.append((row, figure))
    return curves
