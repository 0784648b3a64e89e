"""Tables of divergence, of one model on the terminal and of all in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from truesource.evaluation.divergence.blocks import END
from truesource.report.table import Cell, ReportTable, TableRow, number_cell, score_cell, shown

Record = Mapping[str, Any]
#: measure, its name, what it means
MEASURES = (
    ("kl", "KL(P‖Q)", "mean over contexts of Σ P ln P/Q, nats a token; 0 is perfect"),
    ("kl_paired", "KL(P‖Q), sampled", "estimated from the tokens that occurred; the same expectation, more variance"),
    ("variance_ratio", "variance ratio", "how many times more tokens the sampled KL(P‖Q) needs"),
    ("reverse_kl", "KL(Q‖P)", "nats; infinite if the model expects the impossible"),
    ("reverse_kl_possible", "KL(Q‖P), possible tokens", "nats a token, Q restricted to what the grammar allows"),
    ("js", "Jensen-Shannon", "divergence, nats, 0 to 0.693"),
    ("tv", "total variation", "probability that would have to move, 0 to 1"),
    ("entropy_truth", "entropy of P", "nats a token"),
    ("entropy_model", "entropy of Q", "nats a token; above the entropy of P, the model is vaguer than the truth"),
    ("agreement", "same most probable token", "share of contexts"),
    ("top_k_overlap", "most probable tokens shared", "share of the set of k"),
    ("impossible_mass", "Q of the impossible", "probability on tokens that cannot follow"),
    ("special_mass", "Q of no token", "probability on special tokens, or missing to 1"),
    ("calibration_error", "calibration error", "mean distance of the model's and the true probability, in bins"),
    ("calibration_error_top", "calibration error, first guess", "the same for the model's most probable token"),
)
OF_SAMPLES = (
    ("samples_impossible", "impossible sentences", "share of the model's sentences"),
    ("samples_reverse_kl", "KL(Q‖P)", "nats a token; infinite if the model expects the impossible"),
    ("samples_reverse_kl_paired", "KL(Q‖P), sampled", "estimated from the tokens of the model's sentences"),
    ("samples_reverse_kl_of_possible", "KL(Q‖P), possible sentences", "nats a token, without the impossible sentences"),
    (
        "samples_reverse_kl_possible",
        "KL(Q‖P), possible tokens",
        "Q restricted, word by word, to what the grammar allows",
    ),
    ("samples_impossible_mass", "Q of the impossible", "probability, in the model's own contexts"),
)
BY = {
    "position": "position",
    "length": "words in the sentence",
    "class": "class of the next word",
    "frequency": "probability of the next word",
}
OF_GROUPS = {"kl": "KL(P‖Q)", "js": "JS", "tv": "TV", "agreement": "same first"}


def measures_table(
    models: Mapping[str, Sequence[Record]], rows: Sequence[tuple[str, str, str]] = MEASURES, title: str = ""
) -> ReportTable:
    """A row for each measure, a column for each model.

    Args:
        models: records by the heading of the column.
        rows: measure, name, meaning.
        title: of the table.
    """
    named = [{record["name"]: record for record in records if "by" not in record} for records in models.values()]
    shown_rows = [(label, [_cell(name, scores) for scores in named], meaning) for name, label, meaning in rows]
    return ReportTable(
        title=title,
        columns=("measure", *models, "meaning"),
        text=(0, -1),
        rows=[
            TableRow((label, *cells, meaning))
            for label, cells, meaning in shown_rows
            if any(cell is not None for cell in cells)
        ],
        note="P: the truth, Q: the model; 95% intervals from resampling sentences",
    )


def group_table(by: str, models: Mapping[str, Sequence[Record]]) -> ReportTable:
    """A row for each group: all measures of one model, KL of several."""
    names = OF_GROUPS if len(models) == 1 else {"kl": OF_GROUPS["kl"]}
    found = {
        (name, record["name"], record["group"]): record
        for name, records in models.items()
        for record in records
        if record.get("by") == by
    }
    tokens = {group: record["tokens"] for (_, _, group), record in reversed(found.items())}
    columns = [(model, name) for model in models for name in names if any(k[:2] == (model, name) for k in found)]
    groups = list(dict.fromkeys(group for _, _, group in found))
    return ReportTable(
        title=f"By {BY[by]}",
        columns=(
            BY[by],
            "tokens",
            *(names[name] if len(models) == 1 else f"{model}\n{names[name]}" for model, name in columns),
        ),
        rows=[
            TableRow(
                (
                    "sentence ends" if group == END else group,
                    number_cell(tokens[group], ",.0f"),
                    *(score_cell(found.get((model, name, group)), ".4f") for model, name in columns),
                )
            )
            for group in groups
        ],
        note="nats a token, and shares of contexts; tokens are those expected under the truth"
        if by in ("class", "frequency")
        else "nats a token, and shares of contexts",
    )


def _cell(name: str, scores: Mapping[str, Record]) -> Cell | None:
    """The value of a measure, or in what share of the contexts it is infinite; None where it was not measured."""
    if name in scores:
        return score_cell(scores[name], ".4f")
    share, finite = scores.get(f"{name}_infinite"), scores.get(f"{name}_where_finite")
    if share is None:
        return None
    rest = "" if finite is None else f"{shown(finite['value'], '.4f')} in the other contexts"
    part = f"{share['value']:.2%}"
    if part == "100.00%" and finite is not None:
        part = "over 99.99%"
    return Cell(f"infinite in {part} of contexts", small=rest)
