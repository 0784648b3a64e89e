"""Measurement, tables and figure of `evaluate memory`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truesource.evaluation.core.evaluator import EvaluatorOutput
from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.memory.evaluator import MEMORY, MemorySettings
from truesource.evaluation.memory.measure import Memorisation, memory
from truesource.evaluation.show.declared import grouped, measures_table, section_of_measures
from truesource.evaluation.show.figures import MODEL, QUIET, SECOND, to_svg
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell, score_cell
from truesource.generator.language_model import LanguageModel

CHANCE = 0.5


def measure(model: LanguageModel, setting: Setting, settings: MemorySettings) -> EvaluatorOutput:
    """Compare training sentences with the text of a setting; see `truesource.evaluation.memory.measure.memory`.

    Raises:
        InputError: the text is no split of a corpus, or there is no such split of members.
    """
    trained = setting.other_split(settings.members)
    result = memory(model, setting, trained, sentences=settings.sentences, unseen=settings.unseen)
    members, fresh = result.members, result.fresh
    return EvaluatorOutput(
        scores=result.as_scores(),
        entries={
            "members": len(members.values),
            "fresh": len(fresh.values),
            "shared": result.shared,
            "impossible_members": members.excluded,
            "impossible_fresh": fresh.excluded,
            "repetitions": result.repetitions,
        },
        impossible=(
            _places(setting, fresh.different, fresh.impossible_model),
            _places(setting, fresh.different, fresh.impossible_truth),
        ),
        notes=_notes(result, settings),
        title=f"{result.model} ({result.objective}), {len(members.values):,} training and {len(fresh.values):,} fresh"
        " sentences",
        line=str(result.scores["auroc"]),
    )


def _places(setting: Setting, different: Sequence[tuple[str, ...]], numbers: Any) -> list[int]:
    """Return the places in the text of sentences, numbered among the different ones."""
    selected = {different[i] for i in numbers}
    return [i for i, sentence in enumerate(setting.sentences) if tuple(sentence) in selected]


def _notes(found: Memorisation, settings: MemorySettings) -> list[str]:
    notes = []
    if lost := found.members.excluded:
        notes.append(
            f"{lost:,} of {len(found.members.different):,} different training sentences are impossible for the model or"
            " the truth, and left out"
        )
    if found.shared:
        what = "are left out" if settings.unseen else "count on both sides; --unseen leaves them out"
        notes.append(
            f"{found.shared:,} different fresh sentences also occur in the split {settings.members}: they {what}"
        )
    return notes


def groups_table(record: Record, title: str) -> ReportTable:
    """Return a row for each number of repetitions in the training text."""
    rows = [
        TableRow(
            (
                name,
                number_cell(record["repetitions"][name], ","),
                score_cell(scores["auroc"], ".3f"),
                score_cell(scores["memorised"], ".3f"),
                score_cell(scores["memorised_total"], ".1f"),
                score_cell(scores["gap"], ".3f"),
            )
        )
        for name, scores in grouped(record, "repetitions").items()
    ]
    return ReportTable(
        title=title,
        columns=("repetitions", "sentences", "AUROC", "memorised", "in all", "gap"),
        rows=rows,
        note="memorised and gap in bits a sentence, in all in bits; 95% intervals from resampling sentences",
    )


def tables(record: Record, title: str) -> list[ReportTable]:
    """Return the measures of one model, also by repetitions."""
    return [measures_table(MEMORY, {record["model"]: record}, title), groups_table(record, record["model"])]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if nothing was measured."""
    content = section_of_measures(MEMORY, run)
    if content is None:
        return None
    records = run.of_models("memory")
    return {**content, "groups": {name: groups_table(record, "") for name, record in records.items()}}


def figure(record: Record, salt: str) -> str:
    """Draw AUROC and memorised bits by the number of repetitions in the training text."""
    groups = grouped(record, "repetitions")
    with new_figure(8.4, 3.4, salt) as canvas:
        attack, bits = canvas.subplots(1, 2)
        draw_groups(attack, groups, "auroc", MODEL)
        attack.axhline(CHANCE, color=QUIET, linewidth=1.2, linestyle=(0, (4, 3)), label="chance")
        attack.set_ylim(min(0.45, *attack.get_ylim()), 1.02)
        attack.set_ylabel("AUROC, training against fresh")
        draw_groups(bits, groups, "memorised", SECOND)
        floor = next(each["value"] for each in record["records"] if each["name"] == "memorised_fresh")
        bits.axhline(floor, color=QUIET, linewidth=1.2, linestyle=(0, (4, 3)), label="fresh sentences")
        bits.set_ylim(bottom=0.0)
        bits.set_ylabel("memorised, bits a sentence")
        for axes in (attack, bits):
            axes.set_xlabel("repetitions in the training text")
            axes.grid(axis="y")
            axes.legend(loc="upper left")
        return to_svg(canvas, salt, f"What {record['model']} has memorised of its training sentences")


def draw_groups(axes: Any, groups: Mapping[str, Mapping[str, Record]], name: str, color: str) -> None:
    """Draw a measure by repetitions, with its intervals."""
    places = list(range(len(groups)))
    scores = [each[name] for each in groups.values()]
    at = [i for i in places if scores[i]["low"] is not None]
    axes.vlines(at, [scores[i]["low"] for i in at], [scores[i]["high"] for i in at], color=color, alpha=0.6)
    axes.plot(places, [each["value"] for each in scores], color=color, marker="o", markersize=4, label="model")
    axes.set_xticks(places, list(groups))
