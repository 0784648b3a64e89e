"""The section on tokenisation, and its records."""

from __future__ import annotations

from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluators.tokenisation import figures
from truesource.evaluators.tokenisation.tables import estimators_table, further_tables, measures_table
from truesource.grammar.support.records import STRICT
from truesource.report.finished_run import FinishedRun
from truesource.report.records import Record


@with_config(STRICT)
class TokenisationRecord(TypedDict):
    """``tokenisation/<model>.json``."""

    model: str
    marginal: str
    bound: Any
    documents: Any
    left_out: Any
    records: list[ScoreRecord]
    gaps: Any


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
