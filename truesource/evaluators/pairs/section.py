"""What the section on minimal pairs shows: examples, a figure an objective, a table a model."""

from __future__ import annotations

from typing import Any

from truesource.evaluation.pairs.pair import ALL
from truesource.evaluators.pairs.figures import pairs_figure
from truesource.evaluators.pairs.records import PairsOfModel, PairsSummary
from truesource.report.finished_run import FinishedRun, Record

EXPLAINED = {
    "subject-verb": "agreement of subject and verb: the verb in its other number",
    "determiner-noun": "agreement of determiner and noun: the determiner (after a, an: the noun) in its other number",
    "subcategorisation": "a verb as frequent, of the same tag, that does not fit its place",
    "attachment": "one word of a prepositional phrase changed, so that it belongs to the verb, not the noun, or back",
    "word-order": "two neighbours exchanged: words alike, so word frequencies cannot tell",
}
SHOWN = (
    *("pairs", "impossible", "impossible_for_model", "accuracy", "unigram_accuracy", "slope", "correlation"),
    *("choice", "choice_truth", "context", "context_truth"),
)
STRATA = ("attractor", "distance", "exchanged", "frame", "attached", "boundary", "order")
FEWEST = 10  #: pairs of a stratum that is shown


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Figures and rows for the template; None where no pairs were made."""
    summary = run.record("pairs/summary.json", PairsSummary)
    if summary is None:
        return None
    models = run.of_models("pairs/models", PairsOfModel)
    objectives: dict[str, dict[str, list[Record]]] = {}
    for name, found in models.items():
        if found["records"]:
            objectives.setdefault(found["objective"], {})[name] = found["records"]
    return {
        "total": summary["pairs"],
        "notes": summary["notes"],
        "examples": [_example(record) for record in summary["examples"]],
        "figures": [(objective, pairs_figure(objective, records)) for objective, records in objectives.items()],
        "tables": [
            {
                "model": name,
                "objective": found["objective"],
                "left_out": found["left_out"],
                "rows": _rows(found["records"]),
                "strata": _strata(found["records"]),
            }
            for name, found in {"oracle": summary["oracle"], **models}.items()
        ],
    }


def _example(record: Record) -> dict[str, Any]:
    """Both sentences as (word, whether it differs), and the odds."""
    at = set(record["positions"])
    sides = {
        side: [(word, i in at) for i, word in enumerate(record[f"sentence_{side}"].split())] for side in ("good", "bad")
    }
    name = record["phenomenon"]
    return {**sides, "phenomenon": name, "explained": EXPLAINED.get(name, ""), "log_odds": record["log_odds"]}


def _rows(records: list[Record]) -> list[dict[str, Any]]:
    """One row a phenomenon, all together last: its records by name; none where no pair counts."""
    rows: dict[str, dict[str, Any]] = {}
    for record in records:
        if "by" not in record:
            row = rows.setdefault(record["phenomenon"], {**dict.fromkeys(SHOWN), "phenomenon": record["phenomenon"]})
            row[record["name"]] = record
    return [row for name, row in rows.items() if name != ALL] + [row for name, row in rows.items() if name == ALL]


def _strata(records: list[Record]) -> list[dict[str, Any]]:
    """Accuracy by stratum, a phenomenon and property a row; strata of few pairs are left out."""
    counts = {(r["phenomenon"], r["by"], r["group"]): r["value"] for r in records if "by" in r and r["name"] == "pairs"}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for r in records:
        if r.get("by") in STRATA and r["name"] == "accuracy":
            n = counts[r["phenomenon"], r["by"], r["group"]]
            if n >= FEWEST:
                row = {"phenomenon": r["phenomenon"], "by": r["by"], "groups": []}
                rows.setdefault((r["phenomenon"], r["by"]), row)["groups"].append({**r, "pairs": n})
    return [row for row in rows.values() if len(row["groups"]) > 1]
