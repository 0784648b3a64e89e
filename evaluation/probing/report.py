"""Measurement, tables and figures of `evaluate probing`."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.evaluator import EvaluatorOutput
from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.probing.evaluator import ProbingSettings
from truesource.evaluation.probing.results import Probing
from truesource.evaluation.show.figures import MODEL, QUIET, SECOND, TRUTH, to_svg
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record, nested
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell, score_cell
from truesource.evaluation.show.words import nothing_to_measure
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import FEWEST
from truesource.grammar.support.records import STRICT

if TYPE_CHECKING:
    from truesource.lmtrain.references import ModelReference

SHOWN = 18  #: maximum number of labels in the confusion, the most frequent ones
TARGETS = {"tag": "tag of each word", "state": "nonterminal of each word", "span": "phrase label of spans"}
COLUMNS = {
    "accuracy": "accuracy",
    "mcc": "Matthews\ncorrelation",
    "selectivity": "selectivity",
    "kl": "KL to\nposterior",
    "mdl": "description,\nbits per label",
}
#: measure, label, meaning
MEASURES = (
    ("accuracy", "accuracy", "share of test items whose most probable label is right"),
    ("group_accuracy", "accuracy, mean over words", "each word type (for spans: pair of end words) counts equally"),
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
        "accuracy of its most frequent label in training (for spans: of both end words)",
    ),
    ("position_identity_accuracy", "  split by position", "most words occur in training"),
    ("unseen_labels", "labels not in training", "share of test items"),
    ("task_accuracy", "accuracy for selectivity", "on the split of the control task"),
    (
        "control_accuracy",
        "  control task",
        "one random label for each word type (for spans: first word)",
    ),
    ("random_accuracy", "random labels", "accuracy on random labels of items, which cannot be learned"),
    ("random_chance", "  chance", "expected accuracy of the same guesses"),
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


def measure(reference: ModelReference, setting: Setting, settings: ProbingSettings) -> EvaluatorOutput:
    """Probe for each target; notes name the targets without anything to measure.

    Raises:
        NothingToMeasureError: no target can be measured, or the text is transformed.
        InputError: see `truesource.evaluation.probing.probe.probe_model`.
    """
    from truesource.evaluation.probing.probe import probe_model

    require_order(setting.transform, "evaluate probing")
    probings: dict[str, Probing] = {}
    missing: dict[str, NothingToMeasureError] = {}
    for target in settings.targets:
        try:
            probings[target] = probe_model(reference, setting, settings, target)
        except NothingToMeasureError as error:
            missing[target] = error
    if not probings:
        raise next(iter(missing.values()))
    notes = [f"Note: nothing to measure for {target}: {error.reason}" for target, error in missing.items()]
    for probing in probings.values():
        if excluded := probing.parts["excluded"]:
            notes.append(f"{excluded} of {len(setting.sentences)} sentences have probability 0 and are excluded")
        notes += [f"Note: {note}" for note in probing.notes]
    return EvaluatorOutput(
        scores=[score for probing in probings.values() for score in probing.as_scores()],
        entries={"missing": {target: {"code": e.code, "reason": e.reason} for target, e in missing.items()}},
        notes=notes,
    )


def by_target(record: Record) -> dict[str, list[Record]]:
    """Group records by target."""
    targets: dict[str, list[Record]] = {}
    for each in record["records"]:
        targets.setdefault(each["target"], []).append(each)
    return targets


def tables(record: Record, title: str) -> list[ReportTable]:
    """Build all tables of one model: by layer, by step if it has snapshots, and of the best layer."""
    results = []
    for records in by_target(record).values():
        steps = [steps_table(records)] if len(steps_of(records)) > 1 else []
        results += [layers_table(records), *steps, best_table(records)]
    return results


def figure(record: Record, salt: str) -> str:
    """Draw each target: curves by layer, a map of layers and steps if there are snapshots, and the confusion."""
    targets = by_target(record)
    first = next(iter(targets.values()))
    steps = len(steps_of(first)) > 1
    wide = (4.0, 3.4, 4.6) if steps else (4.4, 4.8)
    with new_figure(sum(wide), 4.4 * len(targets), salt) as canvas:
        rows: Any = canvas.subfigures(len(targets), len(wide), width_ratios=wide, squeeze=False)
        for panels, records in zip(rows, targets.values(), strict=True):
            _curves(panels[0], records)
            if steps:
                _heat(panels[1].subplots(), records)
            _confusion(panels[-1].subplots(), records)
        return to_svg(canvas, salt, f"What probes recover from the layers of {first[0]['model']}")


def layer_figure(records: Sequence[Record], salt: str) -> str:
    """Draw accuracy and cross-entropy by layer."""
    with new_figure(4.4, 4.4, salt) as canvas:
        _curves(canvas, records)
        return to_svg(canvas, salt, f"Probes on the layers of {records[0]['model']}")


def checkpoint_figure(records: Sequence[Record], salt: str) -> str | None:
    """Draw accuracy by layer and step; None if only one step was probed."""
    if len(steps_of(records)) < 2:
        return None
    with new_figure(4.4, 3.6, salt) as canvas:
        _heat(canvas.subplots(), records)
        return to_svg(canvas, salt, f"Probes on the layers of {records[0]['model']} in training")


def confusion_figure(records: Sequence[Record], salt: str) -> str:
    """Draw right labels and guesses of the best layer."""
    with new_figure(4.8, 4.4, salt) as canvas:
        _confusion(canvas.subplots(), records)
        return to_svg(canvas, salt, f"Labels that probes of {records[0]['model']} confuse")


Row = tuple[int, float, float | None, float | None]


def layer_rows(records: Sequence[Record], name: str) -> list[Row]:
    """Return layer, value, low and high of a measure of the finished model, by layer; None: no interval."""
    last = max(steps_of(records), default=None)
    rows = [r for r in records if r["name"] == name and r["layer"] is not None and r["step"] == last]
    return sorted((r["layer"], r["value"], r["low"], r["high"]) for r in rows)


def single(records: Sequence[Record], name: str) -> Record | None:
    """Return the record of a measure without layer, or of the best layer; None if it was not measured."""
    return next((r for r in records if r["name"] == name), None)


def _accuracy(records: Sequence[Record]) -> Record:
    return next(r for r in records if r["name"] == "accuracy")


def _curves(canvas: Any, records: Sequence[Record]) -> None:
    axes, below = canvas.subplots(2, 1, sharex=True, height_ratios=(1.6, 1.0))
    by_position, other = layer_rows(records, "task_accuracy"), layer_rows(records, "accuracy")
    both = bool(by_position) and by_position != other
    lines = [("accuracy", MODEL, "-", "probe, split by type" if both else "probe")]
    if both:
        lines.append(("task_accuracy", SECOND, "-", "probe, split by position"))
    lines.append(("control_accuracy", QUIET, "--", "control task"))
    drawn_labels = _accuracy(records).get("right") == "sampled"
    if not drawn_labels:  # then the most probable label is right, so the limit is of another measure
        lines.append(("expected_accuracy", TRUTH, "--", "expected for a sampled label"))
    for name, colour, style, label in lines:
        _line(axes, layer_rows(records, name), colour, style, label, band=name != "expected_accuracy")
    for name, colour, style, label in (
        ("expected_accuracy_limit", TRUTH, "-", "limit" if drawn_labels else "limit of the expected"),
        ("majority_accuracy", QUIET, ":", "most frequent label"),
    ):
        record = single(records, name)
        if record is not None:
            axes.axhline(record["value"], color=colour, linewidth=1.2, linestyle=style, label=label)
    axes.set_ylim(0.0, 1.03)
    axes.set_ylabel("accuracy")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8, handlelength=1.6)
    rows = layer_rows(records, "cross_entropy")
    _line(below, rows, MODEL, "-", "probe")
    floor = layer_rows(records, "entropy")
    below.axhline(floor[0][1], color=TRUTH, linewidth=1.2, label="minimum: entropy of the posterior")
    top = max(value if high is None else high for _, value, _, high in rows)
    below.set_ylim(-0.04 * top, 1.35 * top)
    below.set_ylabel("cross-entropy, nats")
    below.set_xlabel("layer (0: word vectors)")
    below.set_xticks([row[0] for row in floor])
    below.legend(loc="upper center", ncols=2, fontsize=8)
    for panel in (axes, below):
        panel.grid(axis="y")


def _line(axes: Any, rows: Sequence[Row], colour: str, style: str, label: str, *, band: bool = True) -> None:
    if not rows:
        return
    x, value, low, high = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))  # None: NaN
    if band:
        axes.fill_between(x, low, high, where=np.isfinite(low), color=colour, alpha=0.15, linewidth=0)
    axes.plot(x, value, color=colour, linestyle=style, marker="o", markersize=3.6, label=label)


def _heat(axes: Any, records: Sequence[Record]) -> None:
    """Draw accuracy of each layer (across) after each step (down)."""
    values = {(r["step"], r["layer"]): r["value"] for r in records if r["name"] == "accuracy"}
    steps, layers = (sorted({key[i] for key in values}) for i in (0, 1))
    table = np.array([[values[step, layer] for layer in layers] for step in steps])
    image = axes.imshow(table, aspect="auto", cmap="Blues", vmin=min(0.9 * table.min(), 0.5), vmax=1.0)
    middle = (image.norm.vmin + image.norm.vmax) / 2
    for (row, column), value in np.ndenumerate(table):
        colour = "white" if value > middle + 0.12 else "#1f2937"
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(range(len(layers)), [str(layer) for layer in layers])
    axes.set_yticks(range(len(steps)), [f"{step:,}" for step in steps])
    axes.set_xlabel("layer")
    axes.set_ylabel("step of training")
    by_type = _accuracy(records).get("split") == "type"
    axes.set_title(f"accuracy{', split by type' if by_type else ''}", fontsize=9, color=QUIET)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _confusion(axes: Any, records: Sequence[Record]) -> None:
    """Draw the share of guesses (across) for each right label (down); only the most frequent labels.

    Guesses of hidden labels have a separate column, so rows sum to 100%.
    """
    cells = [(r["true"], r["predicted"], r["value"], r["layer"]) for r in records if r["name"] == "confusion"]
    count: dict[str, float] = {}
    for true, guess, value, _ in cells:
        count[true] = count.get(true, 0) + value
        count.setdefault(guess, 0)
    labels = sorted(count, key=lambda label: (-count[label], label))[:SHOWN]
    at = {label: i for i, label in enumerate(labels)}
    others = any(true in at and guess not in at for true, guess, *_ in cells)
    table = np.zeros((len(labels), len(labels) + others))
    for true, guess, value, _ in cells:
        if true in at:
            table[at[true], at.get(guess, len(labels))] += value / count[true]
    axes.imshow(table, aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0)
    for (row, column), value in np.ndenumerate(table):
        if value >= 0.005:
            colour = "white" if value > 0.6 else "#1f2937"
            axes.text(column, row, f"{100 * value:.0f}", ha="center", va="center", fontsize=6.5, color=colour)
    axes.set_xticks(range(table.shape[1]), [*labels, "others"][: table.shape[1]], rotation=90, fontsize=7.5)
    axes.set_yticks(range(len(labels)), [f"{label} ({count[label]:,.0f})" for label in labels], fontsize=7.5)
    axes.set_xlabel("label of the probe")
    axes.set_ylabel("right label (test items)")
    more = f", {len(labels)} most frequent of {len(count)} labels" if len(labels) < len(count) else ""
    axes.set_title(f"layer {cells[0][3]}, % of each row{more}", fontsize=9, color=QUIET)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def layers_table(records: Sequence[Record]) -> ReportTable:
    """Build a row for each layer of the finished model.

    Args:
        records: records of one model and target.
    """
    final, best = final_layers(records), best_layer(records)
    named = [name for name in COLUMNS if any(name in row for row in final.values())]
    accuracy = final[best]["accuracy"]
    split = {name: final[best].get(name, {}).get("split") for name in named}
    size = f": {accuracy['items']:,} items, {accuracy['labels']} labels"
    target = f", {TARGETS[accuracy['target']]}"
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
    """Describe what the intervals of a measure resample."""
    unit = RESAMPLED[record["resampled"]]
    return (
        f"; intervals: none, fewer than {FEWEST} {unit}"
        if record["low"] is None
        else f"; 95% intervals: resampled {unit}"
    )


def steps_table(records: Sequence[Record]) -> ReportTable:
    """Build a table of accuracy by step and layer."""
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
    """Build a table of the best layer with baselines, limits and controls."""
    best = best_layer(records)
    records_by_name = {**{r["name"]: r for r in records if r["layer"] is None}, **final_layers(records)[best]}
    return ReportTable(
        title=f"Layer {best}",
        columns=("measure", "value", "meaning"),
        text=(0, 2),
        rows=[
            TableRow((label, score_cell(records_by_name[name], ".3f"), meaning))
            for name, label, meaning in MEASURES
            if name in records_by_name
        ],
    )


def steps_of(records: Sequence[Record]) -> list[int]:
    """Return the training steps of the checkpoints, ascending."""
    return sorted({r["step"] for r in records if r["step"] is not None})


def best_layer(records: Sequence[Record]) -> int:
    """Return the layer whose confusion was counted."""
    return next(int(r["layer"]) for r in records if r["name"] == "confusion")


def final_layers(records: Sequence[Record]) -> dict[int, dict[str, Record]]:
    """Return measures of the finished model by layer, ascending, and name."""
    last = max(steps_of(records), default=None)
    some = (r for r in records if r["layer"] is not None and r["step"] == last and r["name"] != "confusion")
    return dict(sorted(nested(some, itemgetter("layer")).items()))


@with_config(STRICT)
class ProbingRecord(TypedDict):
    """``probing/<model>.json``."""

    model: str
    objective: str
    missing: dict[str, object]  #: targets that cannot be measured, with code and reason
    records: list[Any]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if no network was probed."""
    tasks: list[dict[str, object]] = []
    missing: dict[str, list[str]] = {}
    for model, record in run.of_models("probing", ProbingRecord).items():
        for target, records in by_target(record).items():
            salt = f"probe{len(tasks)}"
            tasks.append(
                {
                    "model": model,
                    "title": f"{model}: {TARGETS[target]}",
                    "best": best_layer(records),
                    "table": layers_table(records),
                    "measures": best_table(records),
                    "layers": layer_figure(records, f"{salt}a"),
                    "steps": checkpoint_figure(records, f"{salt}b"),
                    "confusion": confusion_figure(records, f"{salt}c"),
                }
            )
        for target, note in record["missing"].items():
            missing.setdefault(note["reason"], []).append(f"{target} of {model}")
    notes = [nothing_to_measure(reason, whom) for reason, whom in missing.items()]
    return {"tasks": tasks, "notes": notes} if tasks else None
