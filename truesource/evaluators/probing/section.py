"""What the section on probes shows: tables and figures of each model and target."""

from __future__ import annotations

from typing import Any

from truesource.evaluators.probing import figures
from truesource.evaluators.probing.records import ProbingRecord
from truesource.evaluators.probing.tables import TARGETS, best_layer, best_table, layers_table
from truesource.report.finished_run import FinishedRun
from truesource.report.unmeasured import sentence


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Tables and figures for the template; None where no network was probed."""
    tasks: list[dict[str, Any]] = []
    missing: dict[str, list[str]] = {}
    for model, found in run.of_models("probing", ProbingRecord).items():
        for target, records in found["targets"].items():
            salt = f"probe{len(tasks)}"
            tasks.append(
                {
                    "model": model,
                    "title": f"{model}: {TARGETS[target]}",
                    "best": best_layer(records),
                    "table": layers_table(records),
                    "measures": best_table(records),
                    "layers": figures.layer_figure(records, f"{salt}a"),
                    "steps": figures.checkpoint_figure(records, f"{salt}b"),
                    "confusion": figures.confusion_figure(records, f"{salt}c"),
                }
            )
        for target, note in found.get("missing", {}).items():
            missing.setdefault(note["reason"], []).append(f"{target} of {model}")
    notes = [sentence(reason, whom) for reason, whom in missing.items()]
    return {"tasks": tasks, "notes": notes} if tasks else None
