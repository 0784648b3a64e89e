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


def record_of(result: EvaluatorOutput, name: str = "") -> dict[str, object]:
    """Return the record of a result in a run.

    Args:
        result: with one score or more.
        name: of the model in the run; empty: its own name.
    """
    records = [score.as_record() for score in result.scores]
    head = {key: records[0][key] for key in ("model", "objective")}
    record = {**head, **result.entries, "records": records}
    return under_name(record, head["model"], name) if name else record


def measured(evaluator: Evaluator, model: Any, setting: Setting, name: str) -> dict[str, object]:
    """Return the record of a loaded model, under another name, by an evaluator with its default settings."""
    return record_of(evaluator.measure(model, setting, evaluator.settings()), name)


def plain(record: Record) -> dict[str, Record]:
    """Return the records of whole measures by name, without records of tables and groups."""
    return {each["name"]: each for each in record["records"] if "by" not in each and "table" not in each}


def grouped(record: Record, by: str) -> dict[str, dict[str, Record]]:
    """Return the records of groups of one kind: by group, in their order, and by name."""
    from truesource.evaluation.show.records import nested

    return nested((each for each in record["records"] if each.get("by") == by), itemgetter("group"))


def measures_table(
    evaluator: Evaluator,
    models: Mapping[str, Record],
    title: str = "",
    note: str = "",
    cell: Callable[[Measure, Record], Cell | None] | None = None,
) -> ReportTable:
    """Return a row for each available measure, a column for each model.

    Args:
        evaluator: whose measures they are.
        models: records of each model in a run, by the heading of its column.
        title: of the table.
        note: below it.
        cell: of a measure in a record; None: its value, if it was measured.
    """
    from truesource.evaluation.show.table import ReportTable, TableRow

    cell_of = cell or measure_cell
    cells = {each: [cell_of(each, record) for record in models.values()] for each in evaluator.measures}
    rows = [TableRow((each.label, *row, each.meaning)) for each, row in cells.items() if any(row)]
    return ReportTable(title=title, columns=("measure", *models, "meaning"), text=(0, -1), rows=rows, note=note)


def measure_cell(measure: Measure, record: Record) -> Cell | None:
    """Return the value of a measure with its interval; None if it was not measured."""
    from truesource.evaluation.show.table import score_cell

    return score_cell(plain(record).get(measure.name), measure.format)


def section_of(evaluator: Evaluator, run: MeasuredRun) -> Any:
    """Return the content of the template of an evaluator; None or empty if nothing was measured."""
    section = evaluator.function("section")
    return section_of_measures(evaluator, run) if section is None else section(run)


def section_of_measures(evaluator: Evaluator, run: MeasuredRun) -> dict[str, object] | None:
    """Return the content of the template of measures, a table and figures; None if nothing was measured."""
    records = run.of_models(evaluator.name)
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
    """Return the template of a section: from the folder of the evaluator, or the template of measures."""
    template = Path(str(evaluator.module.__file__)).with_name("section.html.j2")
    return template if template.is_file() else Path(__file__).with_suffix(".html.j2")


def figures_of(evaluator: Evaluator, records: Mapping[str, Record]) -> dict[str, str]:
    """Return the figure of each model that has one, as ``<svg>``."""
    draw = evaluator.function("figure")
    if draw is None:
        return {}
    figures = {name: draw(record, f"{evaluator.name}-{name}") for name, record in records.items()}
    return {name: svg for name, svg in figures.items() if svg is not None}


def under_name(record: Any, own: object, name: str) -> Any:
    """Return the record with ``name`` for a model wherever its ``own`` name is under the key ``model``.

    A loaded model has its own name; a run uses the name in the configuration.
    """
    if isinstance(record, dict):
        return {
            key: name if key == "model" and value == own else under_name(value, own, name)
            for key, value in record.items()
        }
    return [under_name(each, own, name) for each in record] if isinstance(record, list | tuple) else record
