"""What the section on PPLu shows."""

from __future__ import annotations

from typing import Any

from truesource.evaluators.pplu.records import PpluRecord
from truesource.evaluators.pplu.tables import further_tables, scores_table
from truesource.report.finished_run import FinishedRun


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Tables and figures for the template; None where no model was measured."""
    models = {name: found for name, found in run.of_models("pplu", PpluRecord).items() if found["records"]}
    if not models:
        return None
    unigram = next(iter(models.values())).get("unigram")
    return {
        "scores": scores_table(
            {f"{n}\n{found['objective']}": found["records"] for n, found in models.items()}, unigram
        ),
        "signatures": {
            name: next(r["signature"] for r in found["records"] if r["name"] == "pplu" and "table" not in r)
            for name, found in models.items()
        },
        "further": {name: tables for name, found in models.items() if (tables := further_tables(found["records"]))},
        "figures": {name: figure for name in models if (figure := run.figure(f"pplu/{name}.svg")) is not None},
    }
