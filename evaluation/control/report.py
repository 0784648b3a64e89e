"""Measurement, tables and figure of `evaluate control`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from truesource.evaluation.control.evaluator import CONTROL, ControlSettings
from truesource.evaluation.control.measure import control
from truesource.evaluation.core.evaluator import EvaluatorOutput
from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.show.declared import section_of_measures
from truesource.evaluation.show.figures import MODEL, QUIET, SECOND, TRUTH, to_svg
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record, nested
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell, score_cell
from truesource.generator.language_model import DistributionModel
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.tilting.rewards import event_of
from truesource.grammar.tilting.tilt import binary_kl

WAYS = {
    "frontier": "the event is required",
    "best-of": "best of {at:g}",
    "filter": "{at:g} particles",
    "model": "the model",
    "tuned": "tuned, beta {at:g}",
}
MASKED = "locally masked"  #: a filter of one particle
COLUMNS = ("satisfied", "kl", "excess", "invalid")
#: of each kind of way, its name in the figure, colour and marker
MARKS = {
    "best-of": ("best of n samples", TRUTH, "s"),
    "filter": ("particle filters", SECOND, "o"),
    "tuned": ("the model, tuned", MODEL, "D"),
}
NEAR = 0.05  #: share of the largest KL below which a way has no name in the figure
POINTS = 60  #: of a frontier


def measure(model: DistributionModel, setting: Setting, settings: ControlSettings) -> EvaluatorOutput:
    """Steer, see `truesource.evaluation.control.measure.control`; only networks of words are tuned."""
    from truesource.lmtrain.decoding.decode import draw
    from truesource.lmtrain.decoding.settings import Decoding
    from truesource.lmtrain.tuning import tune
    from truesource.lmtrain.word_models import CausalModel

    network = model if isinstance(model, CausalModel) else None

    def tuned(rewards: Callable[[Sequence[Sequence[str]]], FloatArray], beta: float) -> DistributionModel:
        assert network is not None, "there are no prices without one"
        return tune(network, rewards, beta=beta, seed=setting.seed, steps=settings.tuning_steps).model

    reading = control(
        model,
        setting,
        [event_of(text) for text in settings.events],
        sample=lambda source, n, seed: draw(source, n, Decoding(), seed=seed).sentences,  # type: ignore[arg-type]
        candidates=settings.best_of,
        particles=settings.filters,
        runs=settings.filtered,
        samples=settings.samples,
        prices=() if network is None else settings.prices,
        tune=tuned,
    )
    notes = [f"{model.name} is no network of words, so it was not tuned"] if settings.prices and network is None else []
    return EvaluatorOutput(scores=reading.as_scores(), notes=notes, title=reading.model)


def ways_of(record: Record) -> dict[str, dict[tuple[str, float | None], dict[str, Record]]]:
    """Return the numbers of each way, by event."""
    ways: dict[str, dict[tuple[str, float | None], dict[str, Record]]] = {}
    for each in record["records"]:
        if each.get("by") == "way":
            ways.setdefault(each["event"], {}).setdefault((each["way"], each["at"]), {})[each["name"]] = each
    return ways


def _name(way: str, at: float | None) -> str:
    return MASKED if (way, at) == ("filter", 1) else WAYS[way].format(at=at)


def ways_table(event: str, ways: dict[tuple[str, float | None], dict[str, Record]]) -> ReportTable:
    """Return a row for each way."""
    probability = ways["frontier", None]["probability"]["value"]
    rows = [
        TableRow((_name(*way), *(score_cell(scores.get(name), ".3f") for name in COLUMNS)))
        for way, scores in ways.items()
    ]
    return ReportTable(
        title=f"{event}, of which the truth has probability {probability:.4g}",
        columns=("way", "satisfied", "KL", "above the frontier", "impossible"),
        rows=rows,
        note="KL in nats a sentence, from the truth, or of tuned models from the model; of several particles an upper"
        " bound; impossible: share of sentences that the grammar cannot make; 95% intervals",
    )


def estimators_table(record: Record) -> ReportTable | None:
    """Return a row for each estimator of KL; None if nothing was estimated."""
    some = (each for each in record["records"] if each.get("by") == "estimator")
    estimates = nested(some, itemgetter("event", "of", "at", "estimator"))
    if not estimates:
        return None
    rows = [
        TableRow(
            (
                event,
                f"{of}, beta {beta:g}",
                name,
                score_cell(scores.get("mean"), ".4f"),
                score_cell(scores.get("bias"), ".4f"),
                number_cell(scores["mean"]["spread"], ".4f"),
            )
        )
        for (event, of, beta, name), scores in estimates.items()
    ]
    return ReportTable(
        title="Estimators of KL",
        columns=("event", "of", "estimator", "mean", "bias", "standard deviation"),
        rows=rows,
        text=(0, 1, 2),
        note="nats a sentence; bias: of a tilted truth from its exact KL, of a tuned model from the expected KL of each"
        " next token along the same sentences; standard deviation of one sentence; 95% intervals",
    )


def tables(record: Record, title: str) -> list[ReportTable]:
    """Return a table for each event, and one of estimators."""
    of_events = [ways_table(event, ways) for event, ways in ways_of(record).items()]
    estimators = estimators_table(record)
    return [*of_events, *([] if estimators is None else [estimators])]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if nothing was measured."""
    content = section_of_measures(CONTROL, run)
    if content is None:
        return None
    return {
        **content,
        "tables": {name: tables(record, "") for name, record in run.of_models("control").items()},
    }


def figure(record: Record, salt: str) -> str:
    """Draw for each event the frontier, and all ways below it."""
    events = ways_of(record)
    with new_figure(1.0 + 4.6 * len(events), 3.8, salt) as canvas:
        panels = canvas.subplots(1, len(events), squeeze=False)[0]
        for axes, (event, ways) in zip(panels, events.items(), strict=True):
            _frontiers(axes, ways)
            farthest = max(scores["kl"]["value"] for scores in ways.values() if "kl" in scores)
            for kind, (label, color, marker) in MARKS.items():
                axes.plot([], [], marker, color=color, markersize=5, label=label)
                for (way, at), scores in ways.items():
                    if way == kind and "kl" in scores:
                        named = scores["kl"]["value"] > NEAR * farthest  # names of the others would cover each other
                        _point(axes, scores, color, marker, _name(way, at) if named else "")
            axes.set_title(event)
            axes.set_xlabel("KL, nats a sentence")
            axes.set_ylabel("probability of the event")
            axes.set_ylim(0.0, 1.08)
            axes.grid(color=QUIET, alpha=0.3)
        panels[0].legend(loc="lower right")
        return to_svg(canvas, salt, f"{record['model']} and the truth, steered to events, below the exact frontier")


def _frontiers(axes: Any, ways: dict[tuple[str, float | None], dict[str, Record]]) -> None:
    """Draw the exact frontier of the truth, and the frontier of a tuned model from its samples."""
    starts = [(ways["frontier", None]["probability"]["value"], TRUTH, "-", "exact frontier")]
    model_start = ways.get(("model", None), {}).get("satisfied", {}).get("value", 0.0)
    if any(way == "tuned" for way, _ in ways) and 0.0 < model_start < 1.0:
        starts.append((model_start, MODEL, "--", "frontier of the model"))
    for start, color, style, label in starts:
        reached = np.linspace(start, 1.0, POINTS)
        axes.plot([binary_kl(float(q), start) for q in reached], reached, style, color=color, label=label)


def _point(axes: Any, scores: dict[str, Record], color: str, marker: str, name: str) -> None:
    """Draw a way with both its intervals, and its name next to it."""
    kl, there = scores["kl"], scores["satisfied"]
    for score, draw in ((kl, axes.hlines), (there, axes.vlines)):
        if score["low"] is not None:
            other = there if score is kl else kl
            draw(other["value"], score["low"], score["high"], color=color, alpha=0.6)
    axes.plot([kl["value"]], [there["value"]], marker, color=color, markersize=5)
    axes.annotate(name, (kl["value"], there["value"]), textcoords="offset points", xytext=(4, -11), fontsize=7)
