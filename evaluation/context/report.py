"""Measurement, tables and figure of `evaluate context`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from truesource.evaluation.context.evaluator import CONTEXT, ContextSettings
from truesource.evaluation.context.measure import ALL, context_use
from truesource.evaluation.core.evaluator import EvaluatorOutput, Measure
from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.show.declared import grouped, measure_cell, measures_table, plain, section_of_measures
from truesource.evaluation.show.figures import (
    MODEL,
    QUIET,
    SERIES,
    TRUTH,
    plain_log_axis,
    round_ticks,
    step_axis,
    to_svg,
)
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, score_cell
from truesource.generator.language_model import DistributionModel

LEAST = 1e-3  #: nats; least value on a logarithmic axis, also drawn for smaller and negative ones


def measure(model: DistributionModel, setting: Setting, settings: ContextSettings) -> EvaluatorOutput:
    """Compare with predictors; see `truesource.evaluation.context.measure.context_use`."""
    use = context_use(model, setting, words=settings.lines - 1, placed=settings.placed)
    return EvaluatorOutput(
        scores=use.as_scores(),
        entries={"contexts": use.contexts, "excluded": len(use.impossible)},
        impossible=((), use.impossible.tolist()),
        title=f"{use.model}, {use.contexts:,} contexts",
        line=_line(use.scores["effective_context"], settings.lines - 1),
    )


def _line(score: Score, most: int) -> str:
    """Return the effective context with its signature: more than ``most`` words if the truth is nearest."""
    words = _words(score.value, most)
    ends = (
        "" if score.low is None or score.high is None else f" [{_words(score.low, most)}, {_words(score.high, most)}]"
    )
    return f"{score.name}|{score.signature} = {words}{ends}"


def _words(value: float, most: int) -> str:
    return f"more than {most}" if value > most else f"{value:.0f}"


def seen_label(seen: str) -> str:
    """Return what a predictor sees, for readers."""
    return "all words: the truth" if seen == ALL else f"{seen} word{'s' * (seen != '1')}"


def lines_table(record: Record, title: str) -> ReportTable:
    """Return a row for each predictor."""
    rows = []
    for seen, scores in grouped(record, "words").items():
        loss = plain(record)["loss_truth"] if seen == ALL else scores["loss"]
        cells = [score_cell(each, ".4f") for each in (loss, scores.get("above_truth"), scores.get("model_above"))]
        rows.append(TableRow((seen_label(seen), *cells, score_cell(scores.get("distance"), ".4f"))))
    return ReportTable(
        title=title,
        columns=("predictor sees", "its loss", "above the truth", "model above it", "KL(P_k‖Q)"),
        rows=rows,
        note="nats a token, 95% intervals from resampling sentences; model above it: below 0, the model is better",
    )


def context_table(models: Mapping[str, Record], title: str = "") -> ReportTable:
    """Return a row for each measure, a column for each model, with a remark on models nearest to the truth."""
    return measures_table(CONTEXT, models, title, cell=_cell)


def _cell(measure: Measure, record: Record) -> Cell | None:
    most = len(grouped(record, "words")) - 2  # words; the truth also has a line
    if measure.name != "effective_context":
        return measure_cell(measure, record)
    score = plain(record)[measure.name]
    if score["value"] > most:
        return Cell(f"more than {most}", small="nearest to the truth")
    cell = measure_cell(measure, record)
    if cell is None or cell.ends is None:
        return cell
    return replace(cell, ends=(_words(score["low"], most), _words(score["high"], most)))


def tables(record: Record, title: str) -> list[ReportTable]:
    """Return the measures of one model, and its lines."""
    return [context_table({record["model"]: record}, title), lines_table(record, record["model"])]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if nothing was measured."""
    content = section_of_measures(CONTEXT, run)
    if content is None:
        return None
    records = run.of_models("context")
    learned = {name: r for name, r in run.of_models("dynamics").items() if name in records}
    return {
        **content,
        "table": context_table(records),
        "lines": {name: lines_table(record, "") for name, record in records.items()},
        "training": training_figure(records, learned, "context-training") if learned else None,
    }


def training_figure(records: Mapping[str, Record], learned: Mapping[str, Record], salt: str) -> str:
    """Draw the distance of each model from the truth in training, with the lines of k words, as ``<svg>``.

    Args:
        records: of this evaluator, by model; a model without snapshots is a level.
        learned: records of the evaluator `dynamics`, of models with snapshots.
        salt: of the identifiers in the figure.
    """
    with new_figure(9.4, 4.6, salt) as canvas:
        axes = canvas.subplots()
        first = next(iter(records.values()))
        last = 1.0
        for number, (name, record) in enumerate(records.items()):
            color, scores = SERIES[number % len(SERIES)], plain(record)
            if name in learned:
                steps = np.log1p(np.array(learned[name]["steps"], dtype=np.float64))
                gap = np.array([-row[0] for row in learned[name]["curves"]["all"]["mean"]["value"]])
                axes.plot(steps, _drawn(gap), color=color, marker="o", markersize=2.8, linewidth=1.7, label=name)
                last = max(last, float(steps[-1]))
            elif "loss" in scores:
                level = _drawn(scores["loss"]["value"] - scores["loss_truth"]["value"])
                axes.axhline(level, color=color, linewidth=1.4, linestyle=(0, (5, 2)), label=f"{name}, trained")
        for seen, line in grouped(first, "words").items():
            if seen != ALL:
                value = _drawn(line["above_truth"]["value"])
                axes.axhline(value, color=QUIET, linewidth=1.0, linestyle=(0, (1, 2)))
                at = ("axes fraction", "data")
                axes.annotate(seen_label(seen), (1.01, value), xycoords=at, va="center", fontsize=8.5)
        axes.set_yscale("log")
        plain_log_axis(axes.yaxis, round_ticks(*axes.get_ylim()))
        step_axis(axes, np.expm1(np.array([last])))
        axes.set_ylabel("loss above the truth, nats a token")
        axes.grid(axis="y")
        axes.legend(loc="lower left", frameon=True, facecolor="white", edgecolor="none", framealpha=1.0)
        return to_svg(canvas, salt, "Distance from the truth in training, with the best predictors that see k words")


def figure(record: Record, salt: str) -> str:
    """Draw losses of predictors, model and truth, and the distance of the model from each predictor."""
    lines, scores = grouped(record, "words"), plain(record)
    words = [seen for seen in lines if seen != ALL]
    x = list(range(len(words)))
    with new_figure(9.4, 3.6, salt) as canvas:
        losses, distances = canvas.subplots(1, 2)
        losses.plot(x, _values(lines, words, "loss"), color=QUIET, marker="o", markersize=4, label="best of k words")
        for name, color, label in (("loss", MODEL, "model"), ("loss_truth", TRUTH, "truth")):
            if name in scores:
                losses.axhline(scores[name]["value"], color=color, linewidth=1.3, linestyle=(0, (4, 3)), label=label)
        losses.set_ylabel("loss, nats a token")
        losses.legend(loc="upper right")
        places = [seen for seen in (*words, ALL) if "distance" in lines[seen]]
        at = [words.index(seen) if seen != ALL else len(words) for seen in places]
        distances.plot(at, _values(lines, places, "distance"), color=MODEL, marker="o", markersize=4)
        distances.set_ylabel("KL(P_k‖Q), nats a token")
        distances.set_ylim(bottom=0.0)
        for axes, names in ((losses, words), (distances, [*words, ALL])):
            axes.set_xticks(range(len(names)), names)
            axes.set_xlabel("words that the predictor sees")
            axes.grid(axis="y")
        return to_svg(canvas, salt, f"{record['model']} and the best predictors that see k words")


def _drawn(value: Any) -> Any:
    return np.maximum(value, LEAST)


def _values(lines: Mapping[str, Mapping[str, Record]], seen: list[str], name: str) -> list[float]:
    return [float(lines[each][name]["value"]) for each in seen]
