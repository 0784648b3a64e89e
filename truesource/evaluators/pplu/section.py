"""What the section on PPLu shows: a row a model."""

from __future__ import annotations

from typing import Any

from truesource.evaluators.pplu.records import PpluRecord
from truesource.report.finished_run import FinishedRun, Record

SHOWN = (
    *("ppl", "bound", "ppl_unigram", "pplu", "pplu_bound"),
    *("mutual_information", "information_learned", "share_learned"),
)


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Rows for the template; None where no model was measured."""
    rows = [_row(record) for record in run.of_models("pplu", PpluRecord).values() if record["records"]]
    return {"rows": rows} if rows else None


def _row(record: Record) -> dict[str, Any]:
    scores = {score["name"]: score for score in record["records"]}
    return {**dict.fromkeys(SHOWN), **scores, "model": record["model"], "objective": record["objective"]}
