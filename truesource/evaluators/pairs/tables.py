"""Tables of minimal pairs, of one model on the terminal and of all in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truesource.evaluation.pairs.pair import ALL
from truesource.report.table import Cell, ReportTable, TableRow, number_cell, score_cell, shown

Record = Mapping[str, Any]
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
FEWEST = 10  #: pairs of a group that is shown


def examples_table(examples: Sequence[Record]) -> ReportTable:
    """A pair of each phenomenon, the more probable sentence first.

    Args:
        examples: as `truesource.evaluators.pairs.measure.examples`.
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
    """All phenomena together: a row for each measure, a column for each model."""
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
    """A row for each phenomenon, all together last."""
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
    """Accuracy by the size of the true log odds and by properties of the pairs; groups of few pairs are left out."""
    found: dict[tuple[str, str, str], dict[str, Cell | None]] = {}
    for model, records in models.items():
        groups = [r for r in records if "by" in r and (r["by"] != "log_odds" or r["phenomenon"] == ALL)]
        counts = {_group(r): r["value"] for r in groups if r["name"] == "pairs"}
        for record in groups:
            if record["name"] == "accuracy" and counts[_group(record)] >= FEWEST:
                small = f"{counts[_group(record)]:,} pairs"
                found.setdefault(_group(record), {})[model] = score_cell(record, ".3f", small=small)
    return ReportTable(
        title="Accuracy by property",
        columns=("phenomenon", "property", *models),
        text=(0, 1),
        rows=[
            TableRow((phenomenon, f"{'|log odds|' if by == 'log_odds' else by}: {group}", *map(cells.get, models)))
            for (phenomenon, by, group), cells in found.items()
        ],
        note=f"|log odds| of the truth in nats; other properties from the most probable tree; groups of {FEWEST} pairs"
        " or more",
    )


def _group(record: Record) -> tuple[str, str, str]:
    return record["phenomenon"], record["by"], record["group"]


def _whole(records: Sequence[Record]) -> dict[str, dict[str, Record]]:
    """By phenomenon, the measures of all its pairs by name."""
    rows: dict[str, dict[str, Record]] = {}
    for record in records:
        if "by" not in record:
            rows.setdefault(record["phenomenon"], {})[record["name"]] = record
    return rows


def _marked(sentence: str, positions: Sequence[int]) -> str:
    """The words that differ in brackets."""
    return " ".join(f"[{word}]" if i in positions else word for i, word in enumerate(sentence.split()))
