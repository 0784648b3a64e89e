"""What the section on tokenisation shows."""

from __future__ import annotations

from typing import Any

from truesource.evaluators.tokenisation import figures
from truesource.evaluators.tokenisation.further_tables import further_tables
from truesource.evaluators.tokenisation.records import TokenisationRecord
from truesource.evaluators.tokenisation.tables import estimators_table, measures_table
from truesource.report.finished_run import FinishedRun
from truesource.report.records import Record


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Tables and figures for the template; None where nothing was summed."""
    models = run.of_models("tokenisation", TokenisationRecord)
    if not models:
        return None
    parts = [row for found in models.values() for row in figures.parts_of(found["records"])]
    return {
        "measures": measures_table(models),
        "figure": figures.decomposition_figure(parts) if parts else None,
        "models": [_model(number, found) for number, found in enumerate(models.values())],
    }


def _model(number: int, found: Record) -> dict[str, Any]:
    costs = figures.costs_of(found["records"])
    return {
        "name": found["model"],
        "left_out": found["left_out"],
        "warnings": [
            f"{record['set']}: {record['warning']}" if "set" in record else record["warning"]
            for record in found["records"]
            if record["name"] == "below_bound"
        ],
        "estimators": estimators_table(found),
        "further": further_tables(found),
        "cost": figures.cost_figure(number, costs) if costs else None,
        "reference": costs[0].reference if costs else None,
        "entropy": figures.entropy_figure(number, found["gaps"], found["records"]) if found["gaps"] else None,
    }
