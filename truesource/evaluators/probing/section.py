"""What the section on probes shows: figures and rows of each model and target."""

from __future__ import annotations

from typing import Any

from truesource.evaluation.probing.results import intervals
from truesource.evaluators.probing import figures
from truesource.evaluators.probing.records import ProbingRecord
from truesource.report.finished_run import FinishedRun, Record
from truesource.report.unmeasured import sentence

COLUMNS = ("accuracy", "group_accuracy", "mcc", "selectivity", "kl", "mdl")
SINGLE = (
    *("majority_accuracy", "position_identity_accuracy", "expected_accuracy_limit", "unseen_labels"),
    *("random_accuracy", "random_chance"),
)
BEST = ("entropy", "expected_accuracy", "rho_truth", "rho_model", "rho_difference", "compression")
DIFFER = ("split", "ci", "grouped-by", "group", "control")  #: parts of signatures in which columns differ
SAID = {"tag": "tag of each word", "state": "symbol of each word", "span": "phrase label of spans"}


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Figures and rows for the template; None where nothing was probed."""
    tasks: list[dict[str, Any]] = []
    missing: dict[str, list[str]] = {}
    for model, found in run.of_models("probing", ProbingRecord).items():
        for target, records in found["targets"].items():
            tasks.append(_task(f"probe{len(tasks)}", model, target, records))
        for target, note in found.get("missing", {}).items():
            missing.setdefault(note["reason"], []).append(f"{target} of {model}")
    notes = [sentence(reason, whom) for reason, whom in missing.items()]
    return {"tasks": tasks, "notes": notes} if tasks else None


def _task(salt: str, model: str, target: str, records: list[Record]) -> dict[str, Any]:
    columns = [name for name in COLUMNS if figures.layer_rows(records, name)]
    by_layer: dict[int, dict[str, figures.Row]] = {}
    for name in columns:
        for row in figures.layer_rows(records, name):
            by_layer.setdefault(row[0], {})[name] = row
    place = next((r["step"], r["layer"]) for r in records if r["name"] == "confusion")
    accuracy = next(r for r in records if r["name"] == "accuracy" and (r["step"], r["layer"]) == place)
    best = place[1]
    parts = {name: figures.parts_of(next(r for r in records if r["name"] == name)) for name in columns}
    signature = parts["accuracy"]
    control = parts.get("selectivity", {})
    return {
        "model": model,
        "target": SAID[target],
        "columns": columns,
        "rows": sorted(by_layer.items()),
        "best": best,
        "single": {name: figures.single(records, name) for name in SINGLE},
        "of_best": {
            name: next((row for row in figures.layer_rows(records, name) if row[0] == best), None) for name in BEST
        },
        "span": target == "span",
        "by_type": signature["split"].startswith("type"),
        "drawn": signature["right"] == "sampled",
        "intervals": intervals(signature["ci"]),
        "elsewhere": [name for name in ("selectivity", "mdl") if name in columns and _other(parts, name, "split")],
        "control": control.get("split", "").split("/")[0],
        "differing": {
            name: "|".join(f"{k}:{parts[name][k]}" for k in DIFFER if k in parts[name] and _other(parts, name, k))
            for name in columns
            if any(k in parts[name] and _other(parts, name, k) for k in DIFFER)
        },
        "size": int(signature["items"]),
        "labels": int(signature["labels"]),
        "signature": accuracy["signature"],
        "layers": figures.layer_figure(records, f"{salt}a"),
        "steps": figures.checkpoint_figure(records, f"{salt}b"),
        "confusion": figures.confusion_figure(records, f"{salt}c"),
    }


def _other(parts: dict[str, dict[str, str]], name: str, part: str) -> bool:
    """Whether a column says otherwise than accuracy in a part of its signature."""
    return parts[name][part] != parts["accuracy"].get(part)
