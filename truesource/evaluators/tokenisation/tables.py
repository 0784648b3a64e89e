"""Tables of marginal probabilities, of one model on the terminal and of all in the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from truesource.report.table import Cell, ReportTable, TableRow, number_cell, score_cell, shown

Record = Mapping[str, Any]
Found = Mapping[str, Any]  #: of one model, see `truesource.evaluators.tokenisation.records`

BOUNDS = {"exact": "exact", "lower": "lower bound", "unbiased": "unbiased", "part": "of a part"}
TOO_LARGE = "over 1e308"
NO_BAR = (
    " No ±: one filter or sample, or dpf with too few candidates for the words of a text; set more with --candidates."
)
#: measure, its name, what it means
MEASURES = (
    ("one_best_nll_per_word", "NLL, canonical tokenisation", "nats a word"),
    ("true_nll_per_word", "  true NLL", "of the grammar"),
    ("distance_per_word", "  distance from the truth", "the first less the second"),
    ("tokenisation_gap_per_word", "    tokenisation gap", "what the canonical tokenisation leaves out"),
    ("tokenisation_share", "    its share", "of the distance"),
    ("model_gap_per_word", "    model gap", "distance of the marginal from the truth"),
    ("model_share", "    its share", "of the distance"),
    ("estimation_error_per_word", "    standard error", "of both gaps, from estimating ln P(text)"),
    ("gap", "marginal gap", "ln P(text) - ln P(canonical tokenisation), nats a document"),
    ("gap_per_piece", "  of a piece", "nats"),
    ("entropy_per_piece", "entropy of segmentations", "under the proposal, nats a piece"),
    ("entropy_gap_rho", "  and gap", "Spearman's correlation over documents, both of a piece"),
    ("canonical_mass", "canonical mass", "P(canonical tokenisation) / P(text), mean of documents"),
    ("canonical_mass_per_word", "  of a word", "the same for a word, pooled"),
)


def measures_table(models: Mapping[str, Found]) -> ReportTable:
    """A row for each measure of the first text, a column for each model."""
    named = [
        {r["name"]: r for r in found["records"] if r.get("run") == found["marginal"] and not {"table", "by"} & r.keys()}
        for found in models.values()
    ]
    by = [found["marginal"] + f" ({BOUNDS[found['bound']]})" * (found["bound"] != "exact") for found in models.values()]
    said = "of a lower bound, the tokenisation gap is a minimum and the model gap a maximum"
    rows = [(label, [score_of(scores.get(name)) for scores in named], meaning) for name, label, meaning in MEASURES]
    return ReportTable(
        columns=("measure", *models, "meaning"),
        text=(0, -1),
        rows=[
            TableRow(("ln P(text) by", *by, said)),
            *(TableRow((label, *cells, meaning)) for label, cells, meaning in rows if any(cells)),
        ],
        note="95% intervals from resampling documents",
    )


def estimators_table(found: Found) -> ReportTable:
    """A row for each estimator on the first text."""
    runs = nested(
        (record for record in found["records"] if "bound" in record and not {"table", "by"} & record.keys()),
        lambda record: record["run"],
        lambda record: record["name"],
    )
    return ReportTable(
        title=f"{found['model']}: {found['documents']:,} documents",
        columns=("estimator", "ln P(text)", "PPL", "bits/char", "value", "ESS", "share", "steps", "lower by"),
        text=(0, 4),
        rows=[
            TableRow(
                (
                    run,
                    _log_p(scores),
                    ppl_cell(scores.get("ppl"), interval=True),
                    value_of(scores["bits_per_character"], ".4f"),
                    BOUNDS[scores["log_p"]["bound"]],
                    value_of(scores.get("least_ess"), ".1f"),
                    value_of(scores.get("largest_share"), ".2f"),
                    value_of(scores["steps_per_piece"], ".1f"),
                    value_of(scores.get("improvement"), ".3%"),
                ),
                (scores.get("ppl") or scores["bits_per_character"])["signature"],
            )
            for run, scores in runs.items()
        ],
        note="ln P(text): nats, all documents, ± half of the 95% interval; PPL: of a word, with 95% interval from"
        " resampling documents; value: a lower bound is certain, an unbiased estimate is right on average; ESS, share:"
        " effective sample size and share of the largest weight, of the worst document (dpf: of its filters); steps:"
        " tokens that the model reads for each piece; lower by: PPL, compared with the canonical tokenisation."
        " Intervals of ln P(text) by wr, block, wor and wor1 can be far too short."
        + (NO_BAR if any(_lacks_bar(scores) for scores in runs.values()) else ""),
    )


def _lacks_bar(scores: Mapping[str, Record]) -> bool:
    return scores["log_p"]["bound"] == "unbiased" and "standard_error" not in scores


def _log_p(scores: Mapping[str, Record]) -> Cell:
    """The estimate, its error, and what makes that doubtful."""
    log_p, error, upper = scores["log_p"], scores.get("standard_error"), scores.get("log_upper")
    remarks = []
    if error is not None and error["value"] > 0.0:
        half = error["value"] if log_p["low"] is None else (log_p["high"] - log_p["low"]) / 2.0
        rounding = scores["rounding"]["value"]
        remarks.append(f"below rounding, ±{rounding:.1g}" if half < rounding else f"±{half:.1g}")
    elif upper is not None and log_p["bound"] == "lower":
        remarks.append(f"to {shown(upper['value'], '.3f')}")
    remarks += [scores["error_too_small"]["note"]] if "error_too_small" in scores else []
    found = score_cell(log_p, ".3f", small=", ".join(remarks))
    assert found is not None
    return replace(found, ends=None, no_interval="")  # the ends are among the remarks


def ppl_cell(record: Record | None, *, interval: bool = False) -> Cell:
    """A perplexity; one that no float can hold has no record."""
    found = score_cell(record, ".2f")
    if found is None:
        return Cell(TOO_LARGE)
    return found if interval else replace(found, ends=None, no_interval="")


def score_of(record: Record | None) -> Cell | None:
    """With more places where the value is small."""
    if record is None:
        return None
    return score_cell(record, ".4f" if abs(record["value"]) >= 0.01 or not record["value"] else ".6f")


def value_of(record: Record | None, spec: str) -> Cell | None:
    """A value without its interval."""
    return None if record is None else number_cell(record["value"], spec)


def nested(
    records: Iterable[Record], row: Callable[[Record], Any], column: Callable[[Record], Any]
) -> dict[Any, dict[Any, Record]]:
    """Records by row and column of a table."""
    found: dict[Any, dict[Any, Record]] = {}
    for record in records:
        found.setdefault(row(record), {})[column(record)] = record
    return found
