"""The section on minimal pairs: records, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluation.pairs.evaluate import IMPOSSIBLE, ODDS_BINS
from truesource.evaluation.pairs.pair import ALL
from truesource.evaluation.show.figures import QUIET, TRUTH, figure, to_svg
from truesource.evaluation.show.records import Record, nested
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell, score_cell, shown
from truesource.grammar.support.records import STRICT

# Okabe & Ito (2008), and darker kin; one a model
COLOURS = ("#0066A6", "#E69F00", "#00805F", "#8C4A73", "#56B4E9", "#7A5C00", "#5B3F8C", "#B03A2E")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
FEWEST_DRAWN = 5  #: pairs of a bin that is drawn
DIFFERENCES = {
    "subject-verb": "agreement of subject and verb: the other number of the verb",
    "determiner-noun": "agreement of determiner and noun: the other number of one (after a, an: the noun)",
    "subcategorisation": "another verb, as frequent and with the same tag, that does not fit the context",
    "attachment": "one word of a prepositional phrase, which changes whether it belongs to the verb or the noun",
    "word-order": "two adjacent words swapped; word frequencies are the same",
}
#: measure, its name, format, what it means
MEASURES = (
    ("pairs", "pairs", ",", "number of pairs that are compared"),
    ("impossible", "pairs with an impossible sentence", ",", "the grammar can generate only one of the two sentences"),
    (
        "impossible_for_model",
        "pairs impossible for the model",
        ",",
        "the model can generate neither sentence: no preference",
    ),
    (
        "accuracy",
        "accuracy",
        ".3f",
        "share in which model and truth prefer the same; no preference counts half",
    ),
    ("unigram_accuracy", "accuracy of frequencies", ".3f", "the same, if only word frequencies decided"),
    ("slope", "slope", ".3f", "of the model's log odds on the true ones; below 1, the model's odds are too even"),
    ("correlation", "correlation", ".3f", "of the model's log odds and the true ones"),
    ("choice", "choice", ".3f", "mean probability of what the truth prefers, if one of the two is chosen"),
    ("choice_truth", "choice of the truth", ".3f", "the same for the probabilities of the truth"),
    (
        "context",
        "context",
        ".2f",
        "mean log odds of what the truth prefers, less its log odds by frequencies, nats",
    ),
    ("context_truth", "context of the truth", ".2f", "the same for the probabilities of the truth"),
)
FEWEST_SHOWN = 10  #: pairs of a group that is shown


def pairs_figure(objective: str, models: Mapping[str, Sequence[Record]]) -> str:
    """Draw four panels, as ``<svg>``.

    Args:
        objective: of the models; one figure each, as the truth of masked models is another.
        models: `truesource.evaluation.pairs.evaluate.PairEvaluation.records` of each.
    """
    salt = f"pairs-{objective}"
    phenomena = list(dict.fromkeys(r["phenomenon"] for records in models.values() for r in records))
    with figure(9.8, 3.5 + 0.42 * max(7, len(phenomena)) + 0.02 * len(models), salt) as canvas:
        panels: Any = canvas.subplots(2, 2, width_ratios=[1.15, 1.0])
        _phenomena(panels[0][0], phenomena, models)
        _by_size(panels[0][1], models)
        _odds(panels[1][0], models)
        _choices(panels[1][1], models)
        handles, labels = panels[0][1].get_legend_handles_labels()
        extra = panels[0][0].get_legend_handles_labels()
        canvas.legend(
            [*handles, *extra[0]],
            [*labels, *extra[1]],
            loc="outside lower center",
            ncols=min(6, len(labels) + len(extra[1])),
        )
        return to_svg(canvas, salt, "Preferences of models in minimal pairs, and their log odds next to the truth")


def _phenomena(axes: Any, phenomena: Sequence[str], models: Mapping[str, Sequence[Record]]) -> None:
    names = [*(name for name in phenomena if name != ALL), ALL]
    step = 0.6 / max(1, len(models))
    for k, records in enumerate(models.values()):
        accuracies = _named(records, "accuracy")
        rows = [(i, accuracies[name]) for i, name in enumerate(names) if name in accuracies]
        at = [i + (k - (len(models) - 1) / 2) * step for i, _ in rows]
        _bars(axes, [r for _, r in rows], at, k, across=True)
    base = _named(next(iter(models.values())), "unigram_accuracy")
    at_base = [(i, base[name]["value"]) for i, name in enumerate(names) if name in base]
    axes.plot(
        *([x for _, x in at_base], [i for i, _ in at_base], "|"),
        color=QUIET,
        markersize=15,
        markeredgewidth=1.6,
        label="by word frequency alone",
        zorder=1,
    )
    axes.axvline(1.0, color=TRUTH, linewidth=1.0)
    axes.axvline(0.5, color=QUIET, linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(min(0.4, axes.get_xlim()[0]), 1.02)
    axes.set_xlabel("accuracy: prefers what the truth prefers")
    axes.set_title("By phenomenon", loc="left")
    axes.grid(axis="x")


def _by_size(axes: Any, models: Mapping[str, Sequence[Record]]) -> None:
    bins = [*ODDS_BINS, IMPOSSIBLE]
    met = [name for name in bins if any(name in _groups(r, "log_odds", "accuracy") for r in models.values())]
    step = 0.36 / max(1, len(models))
    for k, (model, records) in enumerate(models.items()):
        accuracies = _groups(records, "log_odds", "accuracy")
        rows = [(i, accuracies[name]) for i, name in enumerate(met) if name in accuracies]
        at = [i + (k - (len(models) - 1) / 2) * step for i, _ in rows]
        _bars(axes, [r for _, r in rows], at, k, label=model, line=True)
    axes.axhline(1.0, color=TRUTH, linewidth=1.0)
    axes.axhline(0.5, color=QUIET, linewidth=0.8, linestyle=":")
    labels = [name.replace("-", "\N{EN DASH}") if name != IMPOSSIBLE else "one is\nimpossible" for name in met]
    axes.set_xticks(range(len(met)), labels)
    axes.set_ylim(min(0.4, axes.get_ylim()[0]), 1.03)
    axes.set_xlabel("|log odds| of the truth, nats")
    axes.set_ylabel("accuracy")
    axes.set_title("By the size of the true log odds", loc="left")
    axes.grid(axis="y")


def _odds(axes: Any, models: Mapping[str, Sequence[Record]]) -> None:
    most = 1.0
    for k, records in enumerate(models.values()):
        truth, model = (_groups(records, "log_odds", f"{side}_log_odds") for side in ("truth", "model"))
        met = [name for name in truth if name != IMPOSSIBLE]
        _bars(axes, [model[n] for n in met], [truth[n]["value"] for n in met], k, line=True)
        most = max([most, *(truth[n]["value"] for n in met)])
    axes.plot([0, most], [0, most], color=TRUTH, linewidth=1.2)
    axes.annotate(
        "truth", (most, most), color=TRUTH, ha="right", va="bottom", xytext=(-8, 0), textcoords="offset points"
    )
    axes.axhline(0.0, color=QUIET, linewidth=0.8, linestyle=":")
    axes.set_xlabel("mean log odds of the truth, nats")
    axes.set_ylabel("mean log odds of the model")
    axes.set_title("Log odds of what the truth prefers", loc="left")
    axes.grid()


def _choices(axes: Any, models: Mapping[str, Sequence[Record]]) -> None:
    for k, records in enumerate(models.values()):
        model, truth = (_groups(records, "choice", f"choice_of_{side}") for side in ("model", "truth"))
        counts = _groups(records, "choice", "pairs")
        met = [name for name in model if counts[name]["value"] >= FEWEST_DRAWN]
        _bars(axes, [truth[n] for n in met], [model[n]["value"] for n in met], k, line=True)
    axes.plot([0.5, 1.0], [0.5, 1.0], color=TRUTH, linewidth=1.2)
    axes.set_xlim(0.49, 1.01)
    axes.set_xlabel("probability with which the model chooses a side")
    axes.set_ylabel("the truth's probability of it")
    axes.set_title("Calibration of the choice", loc="left")
    axes.grid()


def _bars(
    axes: Any,
    records: Sequence[Record],
    at: Sequence[float],
    number: int,
    *,
    label: str | None = None,
    line: bool = False,
    across: bool = False,
) -> None:
    """Draw values with their intervals, in the colour and with the marker of model ``number``."""
    values = [r["value"] for r in records]
    with_ends = [r if r["low"] is not None else {**r, "low": r["value"], "high": r["value"]} for r in records]
    ends = [[max(0.0, r["value"] - r["low"]) for r in with_ends], [max(0.0, r["high"] - r["value"]) for r in with_ends]]
    colour = COLOURS[number % len(COLOURS)]
    x, y = (values, at) if across else (at, values)
    axes.errorbar(
        *(x, y),
        **{"xerr" if across else "yerr": ends},
        color=colour,
        marker=MARKERS[number % len(MARKERS)],
        markersize=4.5,
        linestyle="-" if line else "none",
        linewidth=1.1,
        elinewidth=1.0,
        label=label,
    )


def _named(records: Sequence[Record], name: str) -> dict[str, Record]:
    """Return one measure of whole phenomena."""
    return {r["phenomenon"]: r for r in records if r["name"] == name and "by" not in r}


def _groups(records: Sequence[Record], by: str, name: str) -> dict[str, Record]:
    """Return one measure of all phenomena together, by group."""
    return {r["group"]: r for r in records if r["name"] == name and r.get("by") == by and r["phenomenon"] == ALL}


def examples_table(examples: Sequence[Record]) -> ReportTable:
    """Return a pair of each phenomenon, the more probable sentence first.

    Args:
        examples: as `truesource.evaluation.pairs.call.examples`.
    """
    rows = []
    for pair in examples:
        name, odds = pair["phenomenon"], pair["log_odds"]
        counts = (number_cell(pair["pairs"], ","), number_cell(pair["impossible_pairs"], ","))
        good, bad = (_marked(pair[f"sentence_{side}"], pair["positions"]) for side in ("good", "bad"))
        shown_odds = "one is impossible" if odds is None else number_cell(odds, ".2f")
        rows += [
            TableRow((name, DIFFERENCES.get(name, ""), good, *counts, shown_odds)),
            TableRow(("", "", bad, "", "", "")),
        ]
    return ReportTable(
        columns=("phenomenon", "difference", "example", "pairs", "one\nimpossible", "log odds\nof the example"),
        text=(0, 1, 2),
        rows=rows,
    )


def measures_table(models: Mapping[str, Sequence[Record]]) -> ReportTable:
    """Return all phenomena together: a row for each measure, a column for each model."""
    named = [_whole(records).get(ALL, {}) for records in models.values()]
    return ReportTable(
        title="All phenomena",
        columns=("measure", *models, "meaning"),
        text=(0, -1),
        rows=[
            TableRow((label, *(score_cell(scores.get(name), spec) for scores in named), meaning))
            for name, label, spec, meaning in MEASURES
        ],
        note="95% intervals: accuracies by Wilson's method, other measures by resampling sentences",
    )


def phenomena_table(model: str, records: Sequence[Record]) -> ReportTable:
    """Return a row for each phenomenon, all together last."""
    rows = _whole(records)
    return ReportTable(
        title=f"{model}, {records[0]['objective']}",
        columns=("phenomenon", "pairs", "accuracy", "frequencies", "slope", "correlation", "choice\n(of the truth)"),
        rows=[
            TableRow(
                (
                    name,
                    number_cell(row["pairs"]["value"], ","),
                    score_cell(row.get("accuracy"), ".3f"),
                    None if (unigram := row.get("unigram_accuracy")) is None else number_cell(unigram["value"], ".3f"),
                    *(score_cell(row.get(measure), ".2f") for measure in ("slope", "correlation")),
                    None
                    if (choice := row.get("choice")) is None
                    else number_cell(choice["value"], ".3f", small=shown(row["choice_truth"]["value"], ".3f")),
                ),
                signature=row["pairs"]["signature"] if name == ALL else "",
                kind="oracle" if model == "oracle" else "",
            )
            for name, row in sorted(rows.items(), key=lambda item: item[0] == ALL)
        ],
    )


def parts_table(models: Mapping[str, Sequence[Record]]) -> ReportTable:
    """Return accuracy by the true log odds and by properties of the pairs, without groups of few pairs."""
    cells_of: dict[tuple[str, str, str], dict[str, Cell | None]] = {}
    for model, records in models.items():
        groups = [r for r in records if "by" in r and (r["by"] != "log_odds" or r["phenomenon"] == ALL)]
        counts = {_group(r): r["value"] for r in groups if r["name"] == "pairs"}
        for record in groups:
            if record["name"] == "accuracy" and counts[_group(record)] >= FEWEST_SHOWN:
                small = f"{counts[_group(record)]:,} pairs"
                cells_of.setdefault(_group(record), {})[model] = score_cell(record, ".3f", small=small)
    return ReportTable(
        title="Accuracy by property",
        columns=("phenomenon", "property", *models),
        text=(0, 1),
        rows=[
            TableRow((phenomenon, f"{'|log odds|' if by == 'log_odds' else by}: {group}", *map(cells.get, models)))
            for (phenomenon, by, group), cells in cells_of.items()
        ],
        note="|log odds| of the truth in nats; other properties from the most probable tree; groups of"
        f" {FEWEST_SHOWN} pairs or more",
    )


def _group(record: Record) -> tuple[str, str, str]:
    return record["phenomenon"], record["by"], record["group"]


def _whole(records: Sequence[Record]) -> dict[str, dict[str, Record]]:
    """Return by phenomenon the measures of all its pairs by name."""
    return nested((record for record in records if "by" not in record), itemgetter("phenomenon"))


def _marked(sentence: str, positions: Sequence[int]) -> str:
    """Return the words that differ in brackets."""
    return " ".join(f"[{word}]" if i in positions else word for i, word in enumerate(sentence.split()))


@with_config(STRICT)
class PairsSummary(TypedDict):
    """``pairs/summary.json``."""

    notes: Any
    examples: Any
    pairs: Any
    oracle: Any


@with_config(STRICT)
class PairsOfModel(TypedDict):
    """``pairs/models/<model>.json``."""

    objective: str
    left_out: Any
    records: list[ScoreRecord]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if no pairs were made."""
    summary = run.record("pairs/summary.json", PairsSummary)
    if summary is None:
        return None
    models = run.of_models("pairs/models", PairsOfModel)
    scored = {name: of_model["records"] for name, of_model in models.items() if of_model["records"]}
    with_oracle = {"oracle": summary["oracle"]["records"], **scored}
    objectives: dict[str, dict[str, list[Record]]] = {}
    for name, records in scored.items():
        objectives.setdefault(models[name]["objective"], {})[name] = records
    parts = parts_table(scored)
    return {
        "total": summary["pairs"],
        "notes": summary["notes"],
        "examples": examples_table(summary["examples"]),
        "left_out": [(name, of_model["left_out"]) for name, of_model in models.items() if of_model["left_out"]],
        "figures": [(objective, pairs_figure(objective, of_models)) for objective, of_models in objectives.items()],
        "measures": measures_table(with_oracle),
        "phenomena": [phenomena_table(name, records) for name, records in with_oracle.items()],
        "parts": parts if parts.rows else None,
    }
