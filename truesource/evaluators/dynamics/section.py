"""What the section on learning dynamics shows."""

from __future__ import annotations

from typing import Any

from truesource.evaluation.dynamics.table import left_out
from truesource.evaluators.dynamics.figures import bars_figure, curves_figure, curves_of, places_figure
from truesource.evaluators.dynamics.records import DynamicsRecord
from truesource.evaluators.dynamics.tables import groups_table
from truesource.report.finished_run import FinishedRun


def section(run: FinishedRun) -> list[dict[str, Any]]:
    """Findings, figures and a table of each model; empty where no snapshots were measured."""
    return [
        {
            **record,
            "left_out": left_out(record["objective"]),
            "classes": "class" in record["curves"],
            "curves": curves_figure(number, record),
            "bars": bars_figure(number, record),
            "places": places_figure(number, record),
            "table": groups_table(record, curves_of(record)),
        }
        for number, record in enumerate(run.of_models("dynamics", DynamicsRecord).values())
    ]
