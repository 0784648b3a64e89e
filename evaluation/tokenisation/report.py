"""The section on tokenisation: records, and tables of marginal probabilities for the terminal and the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluation.show.records import Record, nested
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell, score_cell, shown
from truesource.evaluation.tokenisation import figures
from truesource.evaluation.tokenisation.estimators.registry import ONE_BEST
from truesource.grammar.support.records import STRICT

ModelResults = Mapping[str, Any]  #: results of one model, see `TokenisationRecord`

BOUNDS = {"exact": "exact", "lower": "lower bound", "unbiased": "unbiased", "part": "of a part"}
TOO_LARGE = "over 1e308"
NO_BAR = " No ±: one filter or sample, or dpf with too few candidates for the words of a text; raise --candidates."
#: measure, label, meaning
MEASURES = (
    ("one_best_nll_per_word", "NLL, canonical tokenisation", "nats a word"),
    ("true_nll_per_word", "  true NLL", "of the grammar"),
    ("distance_per_word", "  distance from the truth", "the first less the second"),
    ("tokenisation_gap_per_word", "    tokenisation gap", "what the canonical tokenisation misses"),
    ("tokenisation_share", "    its share", "of the distance"),
    ("model_gap_per_word", "    model gap", "distance of the marginal from the truth"),
    ("model_share", "    its share", "of the distance"),
    ("estimation_error_per_word", "    standard error", "of both gaps, from estimating ln P(text)"),
    ("gap", "marginal gap", "ln P(text) - ln P(canonical tokenisation), nats a document"),
    ("gap_per_piece", "  per piece", "nats"),
    ("entropy_per_piece", "entropy of segmentations", "under the proposal, nats a piece"),
    ("entropy_gap_rho", "  and gap", "Spearman's correlation over documents, both per piece"),
    ("canonical_mass", "canonical mass", "P(canonical tokenisation) / P(text), mean of documents"),
    ("canonical_mass_per_word", "  per word", "the same per word, pooled"),
)
OF_TEXTS = {"gap_per_piece": "marginal gap\nper piece", "entropy_per_piece": "entropy\nper piece"}
LOCAL = {
    "locally_canonical": "the most probable is canonical",
    "local_canonical_mass": "probability of the canonical one",
}
CASES = {"first": "first time", "same": "again, same segmentation", "other": "again, another one"}
SURPRISALS = {
    "surprisal": "canonical tokenisation",
    "surprisal_marginal": "marginal",
    "surprisal_difference": "  difference",
    "surprisal_truth": "truth",
    "surprisal_excess": "  marginal less truth",
}
LANGUAGES = {
    "tokenisation_gap_per_word": "tokenisation gap",
    "model_gap_per_word": "model gap",
    "domain_shift_per_word": "own grammar\nbetter by",
    "training_impossible": "new to the\nfirst grammar",
}


def measures_table(models: Mapping[str, ModelResults]) -> ReportTable:
    """Build a row for each measure of the first text and a column for each model."""
    named = [
        {r["name"]: r for r in each["records"] if r.get("run") == each["marginal"] and not {"table", "by"} & r.keys()}
        for each in models.values()
    ]
    by = [each["marginal"] + f" ({BOUNDS[each['bound']]})" * (each["bound"] != "exact") for each in models.values()]
    explanation = "of a lower bound, the tokenisation gap is a minimum and the model gap a maximum"
    rows = [(label, [score_of(scores.get(name)) for scores in named], meaning) for name, label, meaning in MEASURES]
    return ReportTable(
        columns=("measure", *models, "meaning"),
        text=(0, -1),
        rows=[
            TableRow(("ln P(text) by", *by, explanation)),
            *(TableRow((label, *cells, meaning)) for label, cells, meaning in rows if any(cells)),
        ],
        note="95% intervals from resampling documents",
    )


def estimators_table(results: ModelResults) -> ReportTable:
    """Build a row for each estimator on the first text."""
    runs = nested(
        (record for record in results["records"] if "bound" in record and not {"table", "by"} & record.keys()),
        itemgetter("run"),
    )
    return ReportTable(
        title=f"{results['model']}: {results['documents']:,} documents",
        columns=("estimator", "ln P(text)", "PPL\nper word", "bits/char", "value", "ESS", "share", "steps", "lower by"),
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
        note="ln P(text): nats, all documents, ± half of the 95% interval; PPL: per word, with 95% interval from"
        " resampling documents; ends count in ln P(text), not as words; value: a lower bound is certain, an unbiased"
        " estimate is right on average; ESS, share:"
        " effective sample size and share of the largest weight, of the worst document (dpf: of its filters); steps:"
        " tokens that the model reads for each piece; lower by: PPL, compared with the canonical tokenisation."
        " Intervals of ln P(text) by wr, block, wor and wor1 can be far too short."
        + (NO_BAR if any(_lacks_bar(scores) for scores in runs.values()) else ""),
    )


def _lacks_bar(scores: Mapping[str, Record]) -> bool:
    return scores["log_p"]["bound"] == "unbiased" and "standard_error" not in scores


def _log_p(scores: Mapping[str, Record]) -> Cell:
    """Build the cell of an estimate, its error, and remarks on the error."""
    log_p, error, upper = scores["log_p"], scores.get("standard_error"), scores.get("log_upper")
    remarks = []
    if error is not None and error["value"] > 0.0:
        half = error["value"] if log_p["low"] is None else (log_p["high"] - log_p["low"]) / 2.0
        rounding = scores["rounding"]["value"]
        remarks.append(f"below rounding, ±{rounding:.1g}" if half < rounding else f"±{half:.1g}")
    elif upper is not None and log_p["bound"] == "lower":
        remarks.append(f"to {shown(upper['value'], '.3f')}")
    remarks += [scores["error_too_small"]["note"]] if "error_too_small" in scores else []
    cell = score_cell(log_p, ".3f", small=", ".join(remarks))
    assert cell is not None
    return replace(cell, ends=None, no_interval="")  # the ends are among the remarks


def ppl_cell(record: Record | None, *, interval: bool = False) -> Cell:
    """Build the cell of a perplexity; without a record, it is too large for a float."""
    cell = score_cell(record, ".2f")
    if cell is None:
        return Cell(TOO_LARGE)
    return cell if interval else replace(cell, ends=None, no_interval="")


def score_of(record: Record | None) -> Cell | None:
    """Return the cell of a score, with more places for small values."""
    if record is None:
        return None
    return score_cell(record, ".4f" if abs(record["value"]) >= 0.01 or not record["value"] else ".6f")


def value_of(record: Record | None, spec: str) -> Cell | None:
    """Build the cell of a value without its interval."""
    return None if record is None else number_cell(record["value"], spec)


def further_tables(results: ModelResults) -> list[ReportTable]:
    """Build the requested tables, of one text or of several."""
    records = results["records"]
    tables = (
        _texts(_of(records, "sets"), results["marginal"]),
        _grid(_by_text(records, "grid")),
        _numbers(_of(records, "samples"), _of(records, "order")),
        _temperatures(_by_text(records, "temperature")),
        _caching(_by_text(records, "caching")),
        _canonical(_by_text(records, "canonical")),
        _words(_of(records, "words")),
        _languages(_of(records, "out-of-domain")),
    )
    return [table for table in tables if table.rows]


def _texts(records: Sequence[Record], marginal: str) -> ReportTable:
    """Build a row for each of several texts, and one for all of them."""
    texts = nested(records, itemgetter("set"), itemgetter("run", "name"))
    return ReportTable(
        title="Several texts",
        columns=(
            *("text", "documents", "excluded", f"PPL\n{ONE_BEST}", f"PPL\n{marginal}", "lower by"),
            *OF_TEXTS.values(),
            "their\ncorrelation",
        ),
        rows=[
            TableRow(
                (
                    text,
                    value_of(scores[marginal, "documents"], ",.0f"),
                    value_of(scores[marginal, "left_out"], ",.0f"),
                    ppl_cell(scores.get((ONE_BEST, "ppl"))),
                    ppl_cell(scores.get((marginal, "ppl"))),
                    value_of(scores.get((marginal, "improvement")), ".3%"),
                    *(score_of(scores.get((marginal, name))) for name in (*OF_TEXTS, "entropy_gap_rho")),
                ),
                (scores.get((marginal, "ppl")) or scores[marginal, "bits_per_character"])["signature"],
            )
            for text, scores in texts.items()
        ],
        note="PPL per word; marginal gap, and entropy of segmentations under the proposal: nats; correlation:"
        " Spearman's, over documents",
    )


def _grid(texts: Mapping[str, Sequence[Record]]) -> ReportTable:
    """Build a row for each text, like table 1 of Cao and Rimell (2021)."""
    named = {text: {(r["cuts"], r["method"]): r for r in rows if r["name"] == "ppl"} for text, rows in texts.items()}
    places = list(dict.fromkeys((r["cuts"], r["method"]) for rows in texts.values() for r in rows))
    samples = sorted({r["samples"] for rows in texts.values() for r in rows} - {None})
    return ReportTable(
        title="Published estimators",
        columns=("PPL of a word", *(f"{cuts}\n{method}" if cuts else method for cuts, method in places)),
        rows=[TableRow((text, *(ppl_cell(scores.get(place)) for place in places))) for text, scores in named.items()],
        note=f"{', '.join(map(str, samples))} segmentations; consistent: equal words of a document have equal"
        " segmentations",
    )


def _numbers(samples: Sequence[Record], orders: Sequence[Record]) -> ReportTable:
    """Build a table of perplexity of the first text by number of segmentations."""
    scored = [record for record in samples if record["estimator"] != ONE_BEST]
    ppl = nested(scored, itemgetter("samples"), itemgetter("estimator"))
    of_orders = nested(orders, itemgetter("cuts"), itemgetter("order"))
    names = list(dict.fromkeys(record["estimator"] for record in scored))
    return ReportTable(
        title="PPL of a word by number of segmentations",
        columns=("number", *names, "by scores", "by model"),
        rows=[
            TableRow(
                (
                    number_cell(n, "d"),
                    *(ppl_cell(row[name]) if name in row else None for name in names),
                    *(ppl_cell(of_orders.get(n, {}).get(order)) for order in ("tokeniser", "model")),
                )
            )
            for n, row in sorted(ppl.items())
        ],
        note="by scores, by model: the segmentations of nbest, in the order of their scores (the canonical one first),"
        " and in the order of the model",
    )


def _temperatures(texts: Mapping[str, Sequence[Record]]) -> ReportTable:
    """Build a row for each inverse temperature and a column for each text."""
    flat = [{**record, "text": text} for text, records in texts.items() for record in records]
    rows = nested(flat, itemgetter("b"), itemgetter("text", "name"))
    names = sorted({record["estimator"] for record in flat})

    def cell(row: Mapping[tuple[str, str], Record], text: str) -> Cell:
        against = row.get((text, "difference_percent"))
        difference = "" if against is None else f"{shown(against['value'], '+.2f')}%"
        return replace(ppl_cell(row.get((text, "ppl"))), small=difference)

    return ReportTable(
        title=f"PPL of a word by inverse temperature, {', '.join(names)}",
        columns=("inverse temperature", *texts),
        rows=[TableRow((number_cell(b, "g"), *(cell(row, text) for text in texts))) for b, row in sorted(rows.items())],
        note="second number: compared with nbest; below 0 is a tighter bound",
    )


def _caching(texts: Mapping[str, Sequence[Record]]) -> ReportTable:
    """Build two rows for each text, like table 2 of Cao and Rimell (2021)."""
    flat = [{**record, "text": text} for text, records in texts.items() for record in records]
    rows = nested(flat, itemgetter("text", "words"), itemgetter("case"))
    return ReportTable(
        title="Loss of a repeated word, nats",
        columns=("text", "words", *CASES.values(), "repeats"),
        text=(0, 1),
        rows=[
            TableRow(
                (*place, *(score_of(row.get(case)) for case in CASES), number_cell(row["first"]["occurrences"], ","))
            )
            for place, row in rows.items()
        ],
        note="words that recur in a document, and have the same segmentation again in some samples, another in others",
    )


def _canonical(texts: Mapping[str, Sequence[Record]]) -> ReportTable:
    """Build a column for each text."""
    named = {text: {record["name"]: record for record in records} for text, records in texts.items()}
    most = [f"{segmentation} ({n:,})" for rows in list(texts.values())[:1] for segmentation, n in rows[0]["instead"]]
    words = [number_cell(rows[0]["compared"], ",") for rows in texts.values()]
    cells = {label: [score_of(scores.get(name)) for scores in named.values()] for name, label in LOCAL.items()}
    rows = [TableRow((label, *row)) for label, row in cells.items()]
    return ReportTable(
        title="Segmentations of a word in its context",
        columns=("share", *texts),
        rows=[TableRow(("words with several segmentations", *words)), *rows] if texts else [],
        note="each word given the canonical tokenisation of the words before"
        + (f"; most probable instead: {', '.join(most)}" if most else ""),
    )


def _words(records: Sequence[Record]) -> ReportTable:
    scores = {record["name"]: record for record in records}
    return ReportTable(
        title="Surprisal of a word, nats",
        columns=("surprisal", "mean", "words"),
        rows=[
            TableRow((label, score_of(scores[name]), number_cell(scores[name]["words"], ",")))
            for name, label in SURPRISALS.items()
            if name in scores
        ],
    )


def costs_table(results: ModelResults) -> ReportTable:
    """Build a row for each estimator and size, the cheapest first; no rows without a comparison."""
    errors = [record for record in _of(results["records"], "equal-cost") if record["name"] == "rmse"]
    documents, reference = (errors[0]["documents"], errors[0]["reference"]) if errors else (0, "")
    return ReportTable(
        title="Estimators by cost",
        columns=("estimator", "size", "value", "steps", "bias", "spread", "RMSE"),
        text=(0, 2),
        rows=[
            TableRow(
                (
                    record["estimator"],
                    _size(record),
                    BOUNDS[record["bound"]],
                    number_cell(record["steps_per_piece"], ".1f"),
                    number_cell(record["error"], "+.5f"),
                    number_cell(record["sd"], ".5f"),
                    number_cell(record["value"], ".5f"),
                )
            )
            for record in sorted(errors, key=lambda record: (record["steps_per_piece"], record["value"]))
        ],
        note=f"ln P(text) of {documents} documents less the reference, {reference}, nats; dpf/3x64x128:5 is the mean of"
        " 3 runs with 64 candidates and 128 particles, for 5 documents; RMSE: bias and spread together",
    )


def _size(record: Record) -> str:
    """Return candidates and particles, or samples, of an estimator."""
    if record["estimator"] in ("block", "dpf", "beam"):
        return f"{record['candidates']} x {record['particles']}"
    return "1" if record["estimator"] == ONE_BEST else str(record["samples"])


def _languages(records: Sequence[Record]) -> ReportTable:
    """Build a row for each set of sentences of a changed grammar."""
    sets = nested(records, itemgetter("set"))
    return ReportTable(
        title="Changed grammars",
        columns=("sentences of", *LANGUAGES.values()),
        rows=[
            TableRow(
                (name, *(score_of(scores.get(each)) for each in LANGUAGES)),
                scores["tokenisation_gap_per_word"]["signature"],
            )
            for name, scores in sets.items()
        ],
        note="gaps: nats a word; new to the first grammar: share of sentences that it cannot generate",
    )


def _of(records: Iterable[Record], table: str) -> list[Record]:
    return [record for record in records if record.get("table") == table]


def _by_text(records: Sequence[Record], table: str) -> dict[str, list[Record]]:
    """Group records of a table by text; of one text, return all of them."""
    records_by_text: dict[str, list[Record]] = {}
    for record in _of(records, f"sets-{table}") or _of(records, table):
        records_by_text.setdefault(record.get("set", "all documents"), []).append(record)
    return records_by_text


@with_config(STRICT)
class TokenisationRecord(TypedDict):
    """``tokenisation/<model>.json``."""

    model: str
    marginal: str
    bound: Any
    documents: Any
    left_out: Any
    records: list[ScoreRecord]
    gaps: Any


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if nothing was summed."""
    models = run.of_models("tokenisation", TokenisationRecord)
    if not models:
        return None
    parts = [row for results in models.values() for row in figures.parts_of(results["records"])]
    return {
        "measures": measures_table(models),
        "figure": figures.decomposition_figure(parts) if parts else None,
        "models": [_model(number, results) for number, results in enumerate(models.values())],
    }


def _model(number: int, results: Record) -> dict[str, object]:
    costs = figures.costs_of(results["records"])
    return {
        "name": results["model"],
        "left_out": results["left_out"],
        "warnings": [
            f"{record['set']}: {record['warning']}" if "set" in record else record["warning"]
            for record in results["records"]
            if record["name"] == "below_bound"
        ],
        "estimators": estimators_table(results),
        "further": further_tables(results),
        "cost": figures.cost_figure(number, costs) if costs else None,
        "reference": costs[0].reference if costs else None,
        "entropy": figures.entropy_figure(number, results["gaps"], results["records"]) if results["gaps"] else None,
    }
