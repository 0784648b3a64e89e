"""What the section on training shows."""

from __future__ import annotations

from pathlib import Path

from truesource.chain.scores import figures
from truesource.report.finished_run import FinishedRun, Record, whole_sentences
from truesource.report.part import Part


def section(run: FinishedRun) -> Part:
    """The training curve of each model."""
    content = {"curves": _curves(run), "bounded": whole_sentences(run)}
    return Part("training", "Training", Path(__file__).with_name("section.html.j2"), content)


def _curves(run: FinishedRun) -> list[tuple[Record, str]]:
    drawn = []
    for number, row in enumerate(run.models):
        figure = figures.curve_figure(number, run.metrics.get(row["model"], ()), row, bounded=whole_sentences(run))
        if figure is not None:
            drawn.append((row, figure))
    return drawn
