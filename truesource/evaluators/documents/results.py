"""Measurement, tables and figure of `evaluate documents`."""

from __future__ import annotations

from typing import Any

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.in_context import DocumentReading, documents_read
from truesource.evaluators.documents import DOCUMENTS, DocumentsSettings
from truesource.generator.language_model import DistributionModel
from truesource.grammar.documents.document import DocumentProcess
from truesource.grammar.languages import is_process
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth, process
from truesource.report.figures import QUIET, SECOND, TRUTH, to_svg
from truesource.report.figures import figure as new_figure
from truesource.report.finished_run import FinishedRun
from truesource.report.records import Record
from truesource.report.table import ReportTable, TableRow, score_cell
from truesource.run.declared import measures_table, section_of
from truesource.run.evaluator import Result

HEADINGS = {"string": "string", "position": "words before"}
#: columns of both tables, where they were measured
COLUMNS = {
    "kl": "KL",
    "kl_family": "KL to the family",
    "family_above": "family above the truth",
    "entropy": "entropy of the language",
    "regret": "regret",
}


def measure(model: DistributionModel, setting: Setting, settings: DocumentsSettings) -> Result:
    """Compare with perfect readers; see `truesource.evaluation.in_context.documents_read`.

    Raises:
        InputError: the family is no language of documents.
    """
    found = documents_read(model, setting, family=None if settings.family is None else family_of(settings.family))
    return Result(
        records=found.records(),
        entries={"contexts": found.contexts, "excluded": len(found.impossible)},
        impossible=((), found.impossible.tolist()),
        notes=_notes(found),
        title=f"{found.model}, {found.contexts:,} positions",
        line=str(next(score for name, score in found.scores.items() if name.startswith("kl"))),
    )


def family_of(reference: str) -> Truth:
    """The language of documents that a reference names.

    Raises:
        InputError: it names none.
    """
    made = process(reference) if is_process(reference) else None
    if not isinstance(made, DocumentProcess):
        raise InputError(
            f"a family is a language of documents, such as dirichlet-markov:vocabulary=8, which {reference} is not"
        )
    return made


def _notes(found: DocumentReading) -> list[str]:
    if "entropy" not in found.scores:
        return ["the languages of this truth are infinitely many, so there is no entropy of them and no regret"]
    return [] if found.told else ["there is no regret: it needs a corpus folder of this very pool, without switch"]


def groups_of(record: Record, by: str) -> dict[str, dict[str, Record]]:
    """The numbers of each string, or band of positions, by name, first ones first."""
    groups: dict[str, dict[str, Record]] = {}
    for each in record["records"]:
        if each.get("by") == by:
            groups.setdefault(each["group"], {})[each["name"]] = each
    return groups


def groups_table(record: Record, by: str, title: str) -> ReportTable:
    """A row for each string, or band of positions."""
    groups = groups_of(record, by)
    shown = [name for name in COLUMNS if any(name in scores for scores in groups.values())]
    rows = [
        TableRow((group, *(score_cell(scores.get(name), ".4f") for name in shown))) for group, scores in groups.items()
    ]
    return ReportTable(
        title=title,
        columns=(HEADINGS[by], *(COLUMNS[name] for name in shown)),
        rows=rows,
        note=f"nats a token{', the entropy in nats' * ('entropy' in shown)}; 95% intervals from resampling documents",
    )


def tables(record: Record, title: str) -> list[ReportTable]:
    """The measures of one model, and those by string and by position."""
    own = measures_table(DOCUMENTS, {record["model"]: record}, title)
    return [own, *(groups_table(record, by, record["model"]) for by in HEADINGS)]


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Tables and figures for the template; None where nothing was measured."""
    made = section_of(DOCUMENTS, run)
    if made is None:
        return None
    records = run.of_models("documents", dict[str, Any])
    groups = {name: [groups_table(record, by, "") for by in HEADINGS] for name, record in records.items()}
    return {**made, "groups": groups}


def figure(record: Record, salt: str) -> str:
    """KL of the model to both truths by position, and what a perfect reader does not know yet beside it."""
    groups = groups_of(record, "position")
    curves = {"kl": (TRUTH, "KL(truth‖model)"), "kl_family": (SECOND, "KL(family‖model)")}
    known = any("entropy" in scores for scores in groups.values())
    with new_figure(9.4 if known else 5.4, 3.6, salt) as drawn:
        distances, *rest = drawn.subplots(1, 1 + known, squeeze=False)[0]
        for name, (color, label) in curves.items():
            _curve(distances, groups, name, color, label)
        distances.set_ylabel("nats a token")
        distances.legend(loc="upper left")
        for axes in rest:
            _curve(axes, groups, "entropy", QUIET, "entropy of the language")
            axes.set_ylabel("entropy of the language, nats")
        for axes in (distances, *rest):
            axes.set_xticks(range(len(groups)), list(groups))
            axes.set_xlabel("words before, in the document")
            axes.set_ylim(bottom=0.0)
            axes.grid(axis="y")
        return to_svg(drawn, salt, f"{record['model']} beside perfect readers, by position in the document")


def _curve(axes: Any, groups: dict[str, dict[str, Record]], name: str, color: str, label: str) -> None:
    """One measure by group, with its intervals, where it was measured."""
    scores = [(i, each[name]) for i, each in enumerate(groups.values()) if name in each]
    if not scores:
        return
    ends = [(i, each["low"], each["high"]) for i, each in scores if each["low"] is not None]
    if ends:
        at, low, high = zip(*ends, strict=True)
        axes.vlines(at, low, high, color=color, alpha=0.6)
    places, values = zip(*((i, each["value"]) for i, each in scores), strict=True)
    axes.plot(places, values, color=color, marker="o", markersize=4, label=label)
