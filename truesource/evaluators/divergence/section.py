"""What the section on full distributions shows: a table of measures, one by class of word, a figure a model."""

from __future__ import annotations

from typing import Any

from truesource.evaluation.divergence.groups import END
from truesource.evaluators.divergence.records import DivergenceRecord
from truesource.report.finished_run import FinishedRun, Record

#: measure, lines of its heading, places after the point
COLUMNS = (
    ("kl", ("KL(P‖Q),", "nats a token"), 4),
    ("js", ("Jensen-Shannon,", "nats"), 4),
    ("tv", ("total", "variation"), 4),
    ("agreement", ("same most", "probable token"), 3),
    ("entropy_model", ("entropy of Q", "(of P), nats"), 3),
    ("impossible_mass", ("Q given to the", "impossible"), 4),
    ("calibration_error", ("calibration", "error"), 4),
)


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Rows and figures for the template; None where no full distributions were compared."""
    records = run.of_models("divergence", DivergenceRecord)
    if not records:
        return None
    found = {name: _by_name(record) for name, record in records.items()}
    by_class = {name: _classes(record) for name, record in records.items()}
    classes = list(dict.fromkeys(group for groups in by_class.values() for group in groups))
    return {
        "columns": [(heading, places) for _, heading, places in COLUMNS],
        "rows": [
            {
                "model": name,
                "objective": records[name]["objective"],
                "contexts": records[name]["contexts"],
                "excluded": records[name]["excluded"],
                "cells": [_cell(scores, measure) for measure, _, _ in COLUMNS],
                "paired": scores.get("kl_paired"),
                "ratio": scores.get("variance_ratio"),
                "signature": (scores.get("kl") or scores["kl_infinite"])["signature"],
            }
            for name, scores in found.items()
        ],
        "classes": [
            {
                "group": "sentence ends" if group == END else group,
                "cells": [groups.get(group) for groups in by_class.values()],
            }
            for group in classes
        ],
        "figures": [(name, run.figure(f"divergence/{name}.svg")) for name in found],
    }


def _by_name(record: Record) -> dict[str, Record]:
    return {score["name"]: score for score in record["records"] if "by" not in score}


def _classes(record: Record) -> dict[str, Record]:
    """The divergence of each class, the largest part of the whole first."""
    rows = [r for r in record["records"] if r.get("by") == "class" and r["name"] == "kl"]
    return {r["group"]: r for r in sorted(rows, key=lambda r: -r["value"] * r["tokens"])}


def _cell(scores: dict[str, Record], name: str) -> dict[str, Any] | None:
    """A value with what stands beside it; in what share of the contexts it is infinite, where it has no mean."""
    if name not in scores:
        share = scores.get(f"{name}_infinite")
        return None if share is None else {"infinite": share["value"]}
    beside = scores.get("entropy_truth") if name == "entropy_model" else None
    return {"infinite": None, "beside": None if beside is None else beside["value"], **scores[name]}
