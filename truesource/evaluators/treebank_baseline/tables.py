"""Tables of models on real and on sampled text, on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truesource.report.table import Cell, ReportTable, TableRow, score_cell

Records = Sequence[Mapping[str, Any]]
GRAMMAR = "grammar"
Column = tuple[str, str, tuple[str, ...], str]
#: text, sentences, measures (of a model, of the grammar), heading
COLUMNS: tuple[Column, ...] = (
    ("real", "common", ("ppl", "reference_ppl"), "real text\nPPL"),
    ("real", "common", ("ratio",), "real text\nPPL over the first's"),
    ("real", "common", ("ratio_to_reference",), "real text\nPPL over the grammar's"),
    ("real", "all", ("ppl", "reference_ppl"), "real text, all sentences\nPPL"),
    ("sampled", "common", ("ppl", "bound"), "sampled text\nPPL"),
    ("sampled", "common", ("relative_ppl",), "sampled text\nPPL over bound"),
)
REMARKS = {"reference_ppl": "no bound", "bound": "bound"}


def baseline_table(
    records: Records,
    *,
    title: str = "",
    words: str = "all",
    names: Mapping[str, str] | None = None,
    heading: str = "model",
) -> ReportTable:
    """A row for the grammar and one for each model.

    Args:
        records: of `truesource.evaluation.baseline.compare.score_on_text`, perhaps of both texts.
        title: of the table.
        words: which words count: all, or those in the vocabulary (known).
        names: what rows are called, by name of the model in the records.
        heading: of the first column.
    """
    counted = [record for record in records if record["words"] == words]
    columns = [column for column in COLUMNS if any(_fits(record, column) for record in counted)]
    models = sorted(dict.fromkeys(record["model"] for record in counted), key=lambda name: name != GRAMMAR)
    rows = [
        TableRow(
            ((names or {}).get(model, model), *(_cell(counted, model, column) for column in columns)),
            kind="oracle" if model == GRAMMAR else "",
        )
        for model in models
    ]
    return ReportTable(
        columns=(heading, *(column[-1] for column in columns)),
        rows=rows,
        title=title,
        note="95% intervals, from resampling sentences. Numbers are of the sentences that the grammar and all models can"
        " make, unless the column says all. On real text the grammar's perplexity is a reference, not a bound.",
    )


def _fits(record: Mapping[str, Any], column: Column) -> bool:
    text, sentences, measures, _ = column
    return record["text"] == text and record["sentences"] == sentences and record["name"] in measures


def _cell(records: Records, model: str, column: Column) -> Cell | None:
    record = next((record for record in records if record["model"] == model and _fits(record, column)), None)
    if record is None:
        return None
    plain = record["name"] in ("ppl", *REMARKS)
    spec = ".3f" if not plain else ".2f" if record["value"] < 1000 else ",.0f"
    return score_cell(record, spec, small=REMARKS.get(record["name"], ""))


def coverage_line(counts: Mapping[str, Any], names: Mapping[str, str] | None = None) -> str:
    """How many sentences of a text the grammar and the models can make.

    Args:
        counts: ``given``, ``impossible`` by side, ``common``.
        names: what models are called, by name in the counts.
    """
    given, lost = counts["given"], dict(counts["impossible"])
    parts = []
    if GRAMMAR in lost:
        made = given - lost.pop(GRAMMAR)
        parts.append(f"the grammar can make {made:,} of {given:,} sentences ({made / given:.1%})")
    parts += [f"{(names or {}).get(name, name)} cannot make {number:,}" for name, number in lost.items() if number]
    return "; ".join([*parts, f"{counts['common']:,} are common to all"])
