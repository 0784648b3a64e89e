"""What the section on full distributions shows."""

from __future__ import annotations

from typing import Any

from truesource.evaluators.divergence.records import DivergenceRecord
from truesource.evaluators.divergence.tables import group_table, measures_table
from truesource.report.finished_run import FinishedRun
from truesource.report.records import Record


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Tables and figures for the template; None where no full distributions were compared."""
    models = run.of_models("divergence", DivergenceRecord)
    if not models:
        return None
    records = {name: found["records"] for name, found in models.items()}
    classes = group_table("class", records)
    return {
        "models": [{**found, "signature": _signature(found)} for found in models.values()],
        "measures": measures_table(records),
        "classes": classes if classes.rows else None,
        "figures": [(name, run.figure(f"divergence/{name}.svg")) for name in models],
    }


def _signature(found: Record) -> str:
    """The signature of the divergence."""
    return next(str(r["signature"]) for r in found["records"] if r["name"] in ("kl", "kl_infinite") and "by" not in r)
