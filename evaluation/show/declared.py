"""Records, tables and section of a declared evaluator, see `truesource.evaluation.core.evaluator.Evaluator`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truesource.evaluation.core.evaluator import Evaluator, EvaluatorOutput, Measure
    from truesource.evaluation.core.run_view import MeasuredRun
    from truesource.evaluation.core.setting import Setting
    from truesource.evaluation.show.table import Cell, ReportTable

Record = Mapping[str, Any]


def record_of(result: EvaluatorOutput, name: str = "") -> dict[str, Any]:
    """The record that a run keeps of a result.

    Args:
        result: with one score or more.
        name: what the run calls the model; empty: as it calls itself.
    """
    records = [score.as_record() for score in result.scores]
    head = {key: records[0][key] for key in ("model", "objective")}
    record = {**head, **result.entries, "records": records}
    return under_name(record, head["model"], name) if name else record


def measured(evaluator: Evaluator, model: Any, setting: Setting, name: str) -> dict[str, Any]:
    """The record of a loaded model, under another name, by an evaluator with its default settings."""
    return record_of(evaluator.measure(model, setting, evaluator.settings()), name)


def plain(record: Record) -> dict[str, Record]:
    """The records of whole measures by name, without those of tables and groups."""
    return {each["name"]: each for each in record["records"] if "by" not in each and "table" not in each}


def grouped(record: Record, by: str) -> dict[str, dict[str, Record]]:
    """The records of groups of one kind: by group, in their order, and by name."""
    from truesource.evaluation.show.records import nested

    return nested((each for each in record["records"] if each.get("by") == by), itemgetter("group"))


def measures_table(
    evaluator: Evaluator,
    models: Mapping[str, Record],
    title: str = "",
    note: str = "",
    cell: Callable[[Measure, Record], Cell | None] | None = None,
) -> ReportTable:
    """A row for each measure that there is, a column for each model.

    Args:
        evaluator: whose measures they are.
        models: what a run keeps of each, by the heading of its column.
        title: of the table.
        note: below it.
        cell: of a measure in a record; None: its value, where it was measured.
    """
    from truesource.evaluation.show.table import ReportTable, TableRow

    shown = cell or measure_cell
    cells = {each: [shown(each, record) for record in models.values()] for each in evaluator.measures}
    rows = [TableRow((each.label, *row, each.meaning)) for each, row in cells.items() if any(row)]
    return ReportTable(title=title, columns=("measure", *models, "meaning"), text=(0, -1), rows=rows, note=note)


def measure_cell(measure: Measure, record: Record) -> Cell | None:
    """The value of a measure with its interval; None where it was not measured."""
    from truesource.evaluation.show.table import score_cell

    return score_cell(plain(record).get(measure.name), measure.format)


def section_of(evaluator: Evaluator, run: MeasuredRun) -> Any:
    """Content of the template of an evaluator; None or empty if nothing was measured."""
    own = evaluator.function("section")
    return section_of_measures(evaluator, run) if own is None else own(run)


def section_of_measures(evaluator: Evaluator, run: MeasuredRun) -> dict[str, Any] | None:
    """Content of the template of measures: their table and the figures; None if nothing was measured."""
    records = run.of_models(evaluator.name, dict[str, Any])
    if not records:
        return None
    signed = {name: next((r.get("signature") for r in record["records"]), None) for name, record in records.items()}
    return {
        "prose": evaluator.prose,
        "table": measures_table(evaluator, records),
        "signatures": {name: signature for name, signature in signed.items() if signature},
        "figures": figures_of(evaluator, records),
    }


def template_of(evaluator: Evaluator) -> Path:
    """Return the template of a section: the one in the folder of the evaluator, or that of measures."""
    own = Path(str(evaluator.module.__file__)).with_name("section.html.j2")
    return own if own.is_file() else Path(__file__).with_suffix(".html.j2")


def figures_of(evaluator: Evaluator, records: Mapping[str, Record]) -> dict[str, str]:
    """The figure of each model that has one, as ``<svg>``."""
    draw = evaluator.function("figure")
    if draw is None:
        return {}
    drawn = {name: draw(record, f"{evaluator.name}-{name}") for name, record in records.items()}
    return {name: svg for name, svg in drawn.items() if svg is not None}


def under_name(record: Any, own: str, name: str) -> Any:
    """Return the same record with ``name`` for a model wherever its ``own`` name stands under the key ``model``.

    A model that is loaded has a name of its own; in a run it is what the configuration calls it.
    """
    if isinstance(record, dict):
        return {
            key: name if key == "model" and value == own else under_name(value, own, name)
            for key, value in record.items()
        }
    return [under_name(each, own, name) for each in record] if isinstance(record, list | tuple) else record
