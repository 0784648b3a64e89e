"""What the section on learning dynamics shows: figures, a table and a reading of each model."""

from __future__ import annotations

from typing import Any

from truesource.evaluation.divergence.groups import END
from truesource.evaluation.dynamics.findings import left_out
from truesource.evaluators.dynamics.figures import bars_figure, curves_figure, curves_of, places_figure
from truesource.evaluators.dynamics.records import DynamicsRecord
from truesource.report.finished_run import FinishedRun, Record


def section(run: FinishedRun) -> list[dict[str, Any]]:
    """Everything for the template, a model each; empty where no snapshots were measured."""
    return [_model(number, record) for number, record in enumerate(run.of_models("dynamics", DynamicsRecord).values())]


def _model(number: int, record: Record) -> dict[str, Any]:
    by = curves_of(record)
    return {
        "name": record["model"],
        "objective": record["objective"],
        "steps": record["steps"],
        "tokens": record["tokens"],
        "excluded": record["excluded"],
        "threshold": record["threshold"],
        "frame": record["frame"],
        "left_out": left_out(record["objective"]),
        "tags": record["tags"],
        "contexts": record["contexts"],
        "signature": record["signature"],
        "findings": record["findings"],
        "classes": by == "class",
        "curves": curves_figure(number, record),
        "bars": bars_figure(number, record),
        "places": places_figure(number, record),
        "rows": _rows(record, by),
    }


def _rows(record: Record, by: str) -> list[dict[str, Any]]:
    """Groups at the last checkpoint, in the order in which they were learned; all tokens last."""
    rows = []
    for name, curves in ((name, record["curves"][name]) for name in dict.fromkeys((by, "all"))):
        own = []
        for g, group in enumerate(curves["names"]):
            own.append(
                {
                    "group": "sentence ends" if group == END else group,
                    "tokens": curves["tokens"][g],
                    **{end: curves["mean"][end][-1][g] for end in ("value", "low", "high")},
                    "median": curves["median"]["value"][-1][g],
                    "kl": curves["kl"]["value"][-1][g],
                    "half": curves["half"][g],
                    "reached": curves["reached"][g],
                    "whole": name == "all",
                }
            )
        rows += sorted(own, key=lambda row: float("inf") if row["half"][0] is None else row["half"][0])
    return rows
