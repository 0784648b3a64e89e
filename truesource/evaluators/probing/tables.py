"""Tables of probes, the same on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truesource.grammar.support.printable import FEWEST
from truesource.report.table import ReportTable, TableRow, number_cell, score_cell

Record = Mapping[str, Any]
TARGETS = {"tag": "tag of each word", "state": "symbol of each word", "span": "phrase label of spans"}
COLUMNS = {
    "accuracy": "accuracy",
    "mcc": "Matthews\ncorrelation",
    "selectivity": "selectivity",
    "kl": "KL to\nposterior",
    "mdl": "description,\nbits a label",
}
#: measure, its name, what it means
MEASURES = (
    ("accuracy", "accuracy", "share of test items whose most probable label is right"),
    ("group_accuracy", "accuracy, mean over words", "each word type (of spans: pair of end words) counts the same"),
    ("expected_accuracy", "expected accuracy", "for a label sampled from the posterior"),
    (
        "expected_accuracy_limit",
        "limit of expected accuracy",
        "expected accuracy of the most probable label",
    ),
    ("cross_entropy", "cross-entropy", "nats, to the posterior"),
    ("entropy", "minimum of cross-entropy", "nats, entropy of the posterior"),
    ("majority_accuracy", "most frequent label", "accuracy of always guessing it"),
    (
        "identity_accuracy",
        "label of the word",
        "accuracy of its most frequent label in training (of spans: of both end words)",
    ),
    ("position_identity_accuracy", "  split by position", "where most words occur in training"),
    ("unseen_labels", "labels not in training", "share of test items"),
    ("task_accuracy", "accuracy for selectivity", "on the split of the control task"),
    (
        "control_accuracy",
        "  control task",
        "one random label for each word type (of spans: first word)",
    ),
    ("random_accuracy", "random labels", "accuracy on random labels of items, which cannot be learned"),
    ("random_chance", "  chance", "what the same guesses must expect"),
    ("compression", "compression", "uniform code length divided by online code length, on the split by position"),
    ("rho_truth", "correlation with ln P(word)", "Spearman, of the log probability of the right label"),
    ("rho_model", "  with ln Q(word)", "of the model"),
    ("rho_difference", "  with |ln P \N{MINUS SIGN} ln Q|", "of the difference"),
)
RESAMPLED = {
    "type": "word types",
    "end-type": "word types that are new at one end",
    "sentence": "sentences",
    "pair": "pairs of end words",
}


def layers_table(records: Sequence[Record]) -> ReportTable:
    """A row for each layer of the finished model.

    Args:
        records: of one model and target; those of earlier versions do not say how items are divided.
    """
    final, best = final_layers(records), best_layer(records)
    named = [name for name in COLUMNS if any(name in row for row in final.values())]
    accuracy = final[best]["accuracy"]
    split = {name: final[best].get(name, {}).get("split") for name in named}
    size = f": {accuracy['items']:,} items, {accuracy['labels']} labels" if "items" in accuracy else ""
    target = f", {TARGETS[accuracy['target']]}" if "target" in accuracy else ""
    return ReportTable(
        title=f"{accuracy['model']} ({accuracy['objective']}){target}{size}",
        columns=(
            "layer",
            *(COLUMNS[name] + ("\n(by position)" if split[name] != split["accuracy"] else "") for name in named),
        ),
        rows=[
            TableRow(
                (f"{layer}{' (best)' if layer == best else ''}", *(score_cell(row.get(name), ".3f") for name in named)),
                signature=accuracy["signature"] if layer == max(final) else "",
            )
            for layer, row in final.items()
        ],
        note="layer 0: word vectors; best: lowest loss on the dev part; by position: split by position;"
        f" KL in nats{intervals(accuracy)}",
    )


def intervals(record: Record) -> str:
    """What the intervals of a measure resample; empty for records of earlier versions."""
    if "resampled" not in record:
        return ""
    unit = RESAMPLED[record["resampled"]]
    return (
        f"; intervals: none, fewer than {FEWEST} {unit}"
        if record["low"] is None
        else f"; 95% intervals: resampled {unit}"
    )


def steps_table(records: Sequence[Record]) -> ReportTable:
    """Accuracy by step and layer."""
    values = {(r["step"], r["layer"]): r["value"] for r in records if r["name"] == "accuracy"}
    steps, layers = (sorted({place[i] for place in values}) for i in (0, 1))
    return ReportTable(
        title="Accuracy by training step and layer",
        columns=("step", *(f"layer {layer}" for layer in layers)),
        rows=[
            TableRow((number_cell(step, ","), *(number_cell(values[step, layer], ".3f") for layer in layers)))
            for step in steps
        ],
    )


def best_table(records: Sequence[Record]) -> ReportTable:
    """The best layer with baselines, limits and controls."""
    best = best_layer(records)
    found = {**{r["name"]: r for r in records if r["layer"] is None}, **final_layers(records)[best]}
    return ReportTable(
        title=f"Layer {best}",
        columns=("measure", "value", "meaning"),
        text=(0, 2),
        rows=[
            TableRow((label, score_cell(found[name], ".3f"), meaning))
            for name, label, meaning in MEASURES
            if name in found
        ],
    )


def steps_of(records: Sequence[Record]) -> list[int]:
    """Training steps of the checkpoints, rising."""
    return sorted({r["step"] for r in records if r["step"] is not None})


def best_layer(records: Sequence[Record]) -> int:
    """The layer whose confusion was counted."""
    return next(int(r["layer"]) for r in records if r["name"] == "confusion")


def final_layers(records: Sequence[Record]) -> dict[int, dict[str, Record]]:
    """Measures of the finished model by layer, rising, and name."""
    last = max(steps_of(records), default=None)
    found: dict[int, dict[str, Record]] = {}
    for record in records:
        if record["layer"] is not None and record["step"] == last and record["name"] != "confusion":
            found.setdefault(record["layer"], {})[record["name"]] = record
    return dict(sorted(found.items()))
