"""Measurement, tables and figure of `evaluate documents`."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from truesource.evaluation.core.evaluator import EvaluatorOutput
from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.documents.evaluator import DOCUMENTS, DocumentsSettings
from truesource.evaluation.documents.measure import TRUTH as OF_TRUTH
from truesource.evaluation.documents.measure import DocumentReading, documents_read
from truesource.evaluation.show.declared import grouped, measures_table, plain, section_of_measures
from truesource.evaluation.show.figures import QUIET, SECOND, SERIES, TRUTH, step_axis, to_svg
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record, nested
from truesource.evaluation.show.table import ReportTable, TableRow, score_cell
from truesource.generator.abilities import require
from truesource.grammar.documents.document import DocumentProcess
from truesource.grammar.languages import is_process
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track
from truesource.grammar.truth import Truth, process

HEADINGS = {"string": "string", "position": "words before", "step": "step"}
#: columns of the tables by group, if they were measured
COLUMNS = {
    "kl": "KL",
    "kl_family": "KL to",
    "family_above": "above the truth:",
    "entropy": "entropy of the language",
    "regret": "regret",
    "weight_truth": "weight of the truth",
    "weight_family": "weight of",
    "rest": "KL to the mixture",
}
#: those that do not change along a training
FIXED = ("family_above", "entropy", "regret")
COLOURS = (TRUTH, SECOND, *SERIES[2:])  #: of the truth and the families, in turn

Group = dict[tuple[str, str], Record]  #: the numbers of a group, by measure and perfect reader


def measure(model: Any, setting: Setting, settings: DocumentsSettings) -> EvaluatorOutput:
    """Compare with perfect readers; see `truesource.evaluation.documents.measure.documents_read`.

    Args:
        model: loaded, or a `truesource.lmtrain.references.ModelReference`, which snapshots are found by.
        setting: documents and their truth.
        settings: of the evaluator.

    Raises:
        InputError: a family is no language of documents, the model lacks an ability, or a document is too long for it.
    """
    from truesource.lmtrain.models import load_model
    from truesource.lmtrain.references import ModelReference
    from truesource.lmtrain.scoring import check_lengths
    from truesource.lmtrain.snapshots import checkpoints_of, has_checkpoints

    families = {name: family_of(reference) for name, reference in settings.family.items()}
    named = isinstance(model, ModelReference)
    trained: Any = load_model(model) if named else model
    for ability in ("distributions", "words"):
        require(trained, ability, "evaluate documents")
    check_lengths(setting.sentences, getattr(trained, "longest", None))
    along = settings.snapshots and named and has_checkpoints(model, trained)
    steps: list[Any] = checkpoints_of(model, "evaluate documents", trained) if along else []
    reading = documents_read(
        trained,
        setting,
        families=families,
        along=((step, load()) for step, load in track(steps, "reading of snapshots", len(steps))),
    )
    scores = reading.scores[OF_TRUTH]
    return EvaluatorOutput(
        scores=reading.as_scores(),
        entries={"contexts": reading.contexts, "excluded": len(reading.impossible)},
        impossible=((), reading.impossible.tolist()),
        notes=_notes(reading),
        title=f"{reading.model}, {reading.contexts:,} positions",
        line=str(next(score for name, score in scores.items() if name.startswith("kl"))),
    )


def family_of(reference: str) -> Truth:
    """Return the language of documents that a reference names.

    Raises:
        InputError: it names something else.
    """
    family = process(reference) if is_process(reference) else None
    if not isinstance(family, DocumentProcess):
        raise InputError(
            f"a family is a language of documents, such as dirichlet-markov:vocabulary=8, which {reference} is not"
        )
    return family


def _notes(found: DocumentReading) -> list[str]:
    if "entropy" not in found.scores[OF_TRUTH]:
        return ["the languages of this truth are infinitely many, so there is no entropy of them and no regret"]
    return [] if found.informed else ["there is no regret: it needs a corpus folder of this very pool, without switch"]


def groups_of(record: Record, by: str) -> dict[str, Group]:
    """Return the numbers of each string, band of positions or step, by name, first ones first."""
    some = (each for each in record["records"] if each.get("by") == by)
    return nested(some, itemgetter("group"), lambda each: (each["name"], each.get("reader", OF_TRUTH)))


def families_table(record: Record, title: str) -> ReportTable:
    """Return a row for the truth, and for each family."""
    scores = plain(record)
    columns: dict[str, Mapping[str, Record]] = {"the truth": scores, **grouped(record, "reader")}
    rows = []
    for name, measures in columns.items():
        end = "truth" if measures is scores else "family"
        kl = "kl" if measures is scores else "kl_family"
        finite = measures.get(f"{kl}_where_finite")
        cell = score_cell(finite, ".4f", small="where finite") if finite else score_cell(measures.get(kl), ".4f")
        above = score_cell(measures.get("family_above"), ".4f")
        rows.append(TableRow((name, cell, above, score_cell(measures.get(f"weight_{end}"), ".3f"))))
    return ReportTable(
        title=title,
        columns=("reader", "KL(reader‖model)", "above the truth", "weight"),
        rows=rows,
        note="nats a token; above the truth: what such a reader loses; weight: in the mixture of all that is nearest to"
        " the model; 95% intervals from resampling documents",
    )


def groups_table(record: Record, by: str, title: str) -> ReportTable:
    """Return a row for each string, band of positions or step."""
    groups = groups_of(record, by)
    there = {key for scores in groups.values() for key in scores if by != "step" or key[0] not in FIXED}
    readers = (OF_TRUTH, *grouped(record, "reader"))
    keys = [(name, reader) for name in COLUMNS for reader in readers if (name, reader) in there]
    rows = [
        TableRow((group, *(score_cell(scores.get(key), ".3f" if "weight" in key[0] else ".4f") for key in keys)))
        for group, scores in groups.items()
    ]
    entropy = ", the entropy in nats" * (("entropy", OF_TRUTH) in keys)
    return ReportTable(
        title=title,
        columns=(
            HEADINGS[by],
            *(f"{COLUMNS[name]} {reader}" if reader != OF_TRUTH else COLUMNS[name] for name, reader in keys),
        ),
        rows=rows,
        note=f"nats a token{entropy}; 95% intervals from resampling documents",
    )


def tables(record: Record, title: str) -> list[ReportTable]:
    """Return the measures of one model, also by family, by string, by position and by step."""
    measures = [measures_table(DOCUMENTS, {record["model"]: record}, title)]
    if grouped(record, "reader"):
        measures.append(families_table(record, record["model"]))
    return [*measures, *(groups_table(record, by, record["model"]) for by in HEADINGS if groups_of(record, by))]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if nothing was measured."""
    content = section_of_measures(DOCUMENTS, run)
    if content is None:
        return None
    records = run.of_models("documents")
    return {**content, "groups": {name: tables(record, "")[1:] for name, record in records.items()}}


def figure(record: Record, salt: str) -> str:
    """Draw KL to all readers by position, and the entropy of a perfect reader; below, both along the training."""
    positions, steps = groups_of(record, "position"), groups_of(record, "step")
    has_entropy = any(("entropy", OF_TRUTH) in scores for scores in positions.values())
    weighed = any(("weight_truth", OF_TRUTH) in scores for scores in steps.values())
    with new_figure(9.4 if has_entropy or weighed else 5.4, 3.6 * (1 + bool(steps)), salt) as canvas:
        parts: Any = canvas.subfigures(1 + bool(steps), 1, squeeze=False)[:, 0]
        distances, *rest = parts[0].subplots(1, 1 + has_entropy, squeeze=False)[0]
        _distances(distances, record, positions)
        for axes in rest:
            _curve(axes, positions, ("entropy", OF_TRUTH), QUIET, "entropy of the language")
            axes.set_ylabel("entropy of the language, nats")
        for axes in (distances, *rest):
            axes.set_xticks(range(len(positions)), list(positions))
            axes.set_xlabel("words before, in the document")
        if steps:
            distances, *rest = parts[1].subplots(1, 1 + weighed, squeeze=False)[0]
            at = np.array([float(step) for step in steps])
            _distances(distances, record, steps, np.log1p(at))
            for axes in rest:
                _curve(axes, steps, ("weight_truth", OF_TRUTH), TRUTH, "truth", np.log1p(at))
                for color, name in zip(COLOURS[1:], grouped(record, "reader"), strict=False):
                    _curve(axes, steps, ("weight_family", name), color, name, np.log1p(at))
                axes.set_ylabel("weight in the nearest mixture")
                axes.legend(loc="best")
            for axes in (distances, *rest):
                step_axis(axes, at)
        for axes in canvas.get_axes():
            axes.set_ylim(bottom=0.0)
            axes.grid(axis="y")
        return to_svg(canvas, salt, f"{record['model']} and perfect readers, by position in the document")


def _distances(axes: Any, record: Record, groups: dict[str, Group], at: Any = None) -> None:
    """Draw KL of the model to the truth and to each family, by group."""
    families = grouped(record, "reader")
    _curve(axes, groups, ("kl", OF_TRUTH), TRUTH, "KL(truth‖model)", at)
    for color, name in zip(COLOURS[1:], families, strict=False):
        label = "family" if len(families) == 1 else name
        _curve(axes, groups, ("kl_family", name), color, f"KL({label}‖model)", at)
    axes.set_ylabel("nats a token")
    axes.legend(loc="best")


def _curve(axes: Any, groups: dict[str, Group], key: tuple[str, str], color: str, label: str, at: Any = None) -> None:
    """Draw a measure by group, if it was measured, with its intervals; ``at``: places of the groups."""
    places = range(len(groups)) if at is None else at
    scores = [(place, each[key]) for place, each in zip(places, groups.values(), strict=True) if key in each]
    if not scores:
        return
    ends = [(place, each["low"], each["high"]) for place, each in scores if each["low"] is not None]
    if ends:
        at, low, high = zip(*ends, strict=True)
        axes.vlines(at, low, high, color=color, alpha=0.6)
    x, values = zip(*((place, each["value"]) for place, each in scores), strict=True)
    axes.plot(x, values, color=color, marker="o", markersize=4, label=label)
