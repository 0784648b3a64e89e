"""What the section on minimal pairs shows."""

from __future__ import annotations

from typing import Any

from truesource.evaluators.pairs.figures import pairs_figure
from truesource.evaluators.pairs.records import PairsOfModel, PairsSummary
from truesource.evaluators.pairs.tables import examples_table, measures_table, parts_table, phenomena_table
from truesource.report.finished_run import FinishedRun
from truesource.report.records import Record


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Tables and figures for the template; None where no pairs were made."""
    summary = run.record("pairs/summary.json", PairsSummary)
    if summary is None:
        return None
    models = run.of_models("pairs/models", PairsOfModel)
    scored = {name: found["records"] for name, found in models.items() if found["records"]}
    with_oracle = {"oracle": summary["oracle"]["records"], **scored}
    objectives: dict[str, dict[str, list[Record]]] = {}
    for name, records in scored.items():
        objectives.setdefault(models[name]["objective"], {})[name] = records
    parts = parts_table(scored)
    return {
        "total": summary["pairs"],
        "notes": summary["notes"],
        "examples": examples_table(summary["examples"]),
        "left_out": [(name, found["left_out"]) for name, found in models.items() if found["left_out"]],
        "figures": [(objective, pairs_figure(objective, of_models)) for objective, of_models in objectives.items()],
        "measures": measures_table(with_oracle),
        "phenomena": [phenomena_table(name, records) for name, records in with_oracle.items()],
        "parts": parts if parts.rows else None,
    }
