"""What the section on models trained on the treebank shows."""

from __future__ import annotations

from typing import Any

from truesource.chain.treebank.text import TextRecord
from truesource.evaluators.treebank_baseline.records import EQUAL, REAL, SAMPLED, BaselineRecord
from truesource.evaluators.treebank_baseline.tables import baseline_table, coverage_line, training_table
from truesource.report.finished_run import FinishedRun

#: what a row says that a model was trained on
NAMES = {REAL: "the treebank", EQUAL: "as much sampled text", SAMPLED: "the corpus"}


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Tables for the template; None where no model was trained on the treebank."""
    found = run.of_models("treebank_baseline", BaselineRecord)
    text = run.record("treebank_baseline/text/text.json", TextRecord)
    if not found or text is None:
        return None
    objectives = [o for o in ("causal", "masked") if any(record["objective"] == o for record in found.values())]
    groups = {
        o: {name: record["records"] for name, record in found.items() if record["objective"] == o} for o in objectives
    }
    known = {
        o: records
        for o, records in groups.items()
        if any(score["words"] == "known" for scores in records.values() for score in scores)
    }
    return {
        "text": text,
        "tables": {o: baseline_table(records, names=NAMES) for o, records in groups.items()},
        "known": {o: baseline_table(records, words="known", names=NAMES) for o, records in known.items()},
        "coverage": {name: coverage_line(record["texts"]["real"], NAMES) for name, record in found.items()},
        "training": training_table({name: record["trained"] for name, record in found.items()}, NAMES),
        "equal": any(EQUAL in record["trained"] for record in found.values()),
        "signatures": {name: record["records"][0]["signature"] for name, record in found.items()},
    }
