"""What the section on probes shows: figures and rows of each model and target."""

from __future__ import annotations

from typing import Any

from truesource.report import figures_probing as figures
from truesource.report.folder import Record, RunFolder

COLUMNS = ("accuracy", "group_accuracy", "mcc", "selectivity", "kl", "mdl")
SINGLE = (
    *("majority_accuracy", "position_identity_accuracy", "expected_accuracy_limit", "unseen_labels"),
    *("random_accuracy", "random_chance"),
)
BEST = ("entropy", "rho_truth", "rho_model", "rho_difference", "compression")
SAID = {"tag": "tag of each word", "state": "symbol of each word", "span": "phrase label of spans"}


def probing_section(run: RunFolder) -> dict[str, Any] | None:
    """Figures and rows for the template; None where nothing was probed."""
    if not run.probing:
        return None
    tasks: list[dict[str, Any]] = []
    for model, found in run.probing.items():
        for target, records in found["targets"].items():
            tasks.append(_task(f"probe{len(tasks)}", model, target, records))
    return {"tasks": tasks}


def _task(salt: str, model: str, target: str, records: list[Record]) -> dict[str, Any]:
    columns = [name for name in COLUMNS if figures.layer_rows(records, name)]
    by_layer: dict[int, dict[str, tuple[float, float, float]]] = {}
    for name in columns:
        for layer, *values in figures.layer_rows(records, name):
            by_layer.setdefault(layer, {})[name] = (values[0], values[1], values[2])
    place = next((r["step"], r["layer"]) for r in records if r["name"] == "confusion")
    accuracy = next(r for r in records if r["name"] == "accuracy" and (r["step"], r["layer"]) == place)
    best = place[1]
    signature = dict(part.split(":", 1) for part in accuracy["signature"].split("|"))
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
        "by_type": signature["split"].startswith("type"),
        "groups": _groups(target, signature["split"]),
        "size": int(signature["items"]),
        "labels": int(signature["labels"]),
        "signature": accuracy["signature"],
        "layers": figures.layer_figure(records, f"{salt}a"),
        "steps": figures.checkpoint_figure(records, f"{salt}b"),
        "confusion": figures.confusion_figure(records, f"{salt}c"),
    }


def _groups(target: str, split: str) -> str:
    """What intervals resample."""
    if not split.startswith("type"):
        return "sentences"
    return "pairs of end words" if target == "span" else "word types"
