"""What the section on naturalness shows."""

from __future__ import annotations

from typing import Any

from truesource.evaluators.naturalness.records import NaturalnessRecord
from truesource.evaluators.naturalness.tables import measures_table
from truesource.report.finished_run import FinishedRun


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Table and figure for the template; None where the corpus was not compared with trees."""
    found = run.record("naturalness/naturalness.json", NaturalnessRecord)
    if found is None:
        return None
    of_reference = {r["name"]: r for r in found["records"] if r["source"] == found["reference"]}
    return {
        "reference": found["reference"],
        "raw": "raw grammar" in found["sentences"],
        "measures": measures_table(found["records"], found["sentences"]),
        "figure": run.figure("naturalness/naturalness.svg"),
        "signature": (of_reference.get("ngram_spearman_1") or of_reference["zipf_alpha"])["signature"],
    }
