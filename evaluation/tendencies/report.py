"""The section on tendencies: tables by decoding scheme, and a reading of them in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.score import ScoreRecord
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, shown
from truesource.evaluation.show.words import count
from truesource.evaluation.tendencies.decoding_schemes import HEADLINE, ORACLE
from truesource.evaluation.tendencies.figures import tendencies_figure
from truesource.grammar.support.printable import listed
from truesource.grammar.support.records import STRICT, Count

Findings = Mapping[str, Mapping[str, Any]]  #: records of one sample by name
LEVEL = 0.05  #: of adjusted p-values that have a star
#: measure, its name, what it means
MEASURES = (
    ("length_ks", "sentence length: KS", "largest difference of the distribution functions, 0 to 1"),
    ("length_mean_difference", "  mean, difference", "words"),
    ("length_impossible", "  impossible lengths", "share of sentences"),
    ("stopwords_ks", "stopwords: KS", "of the share of stopwords in a sentence"),
    ("stopwords_mean_difference", "  mean share, difference", ""),
    ("symbols_ks", "symbols: KS", "of the share of symbols in a sentence"),
    ("symbols_mean_difference", "  mean share, difference", ""),
    ("unigram_tv", "words: total variation", "share of tokens that would have to be other words, 0 to 1"),
    ("unigram_linf", "  largest difference", "of the probability of a word"),
    ("unknown_share", "  share of <unk>", "of all tokens"),
    ("outside_share", "  outside the grammar", "share of tokens; above 0 proves that the distributions differ"),
    ("rank_ks", "rank-frequency: KS", "word frequencies in the order of their ranks"),
    ("rank_ks_own_law", "  to its own Zipf law", ""),
    ("rank_ks_reference_law", "  to the reference's law", ""),
    ("zipf_exponent", "  Zipf exponent", "frequency falls with this power of the rank"),
    ("heaps_beta", "Heaps exponent", "different words grow with this power of the length"),
    ("heaps_beta_difference", "  difference", ""),
    ("heaps_dispersion", "  dispersion", "variance divided by the variance of the law"),
    ("types_gap", "  at equal lengths", "different words in a sentence, difference"),
    ("types", "different words", "in equally many tokens of each sample"),
    ("bigram_types", "different pairs of words", "in equally many pairs of each sample"),
)
KIND = {"unigram_tv": "TV", "types": "number"}  #: of a measure; KS if it is not named
SAMPLED = {"samples": "samples of the truth", "permutations": "permutations"}  #: how chance is; others: draws


def measures_table(samples: Mapping[str, Findings], title: str = "", sentences: Mapping[str, int] = {}) -> ReportTable:
    """Return a row for each measure, a column for each sample.

    Args:
        samples: records by name of the sample and of the measure.
        title: of the table.
        sentences: their number by sample, if it is known.
    """
    rows = [
        (label, [_cell(finding.get(name)) for finding in samples.values()], meaning)
        for name, label, meaning in MEASURES
    ]
    columns = [f"{name}\n{sentences[name]:,} sentences" if name in sentences else name for name in samples]
    families = {finding["family"] for row in samples.values() for finding in row.values() if finding.get("family")}
    return ReportTable(
        title=title,
        columns=("measure", *columns, "meaning"),
        keys=("measure", *samples, "meaning"),
        text=(0, -1),
        rows=[TableRow((label, *cells, meaning)) for label, cells, meaning in rows if any(cells)],
        note="After a value: what 95% of chance gives, and p, the probability of such a value, or one farther off, by"
        f" chance. * p is {LEVEL} or less after adjustment (Holm) for {'; '.join(sorted(families)) or 'no test'}",
    )


def starred(record: Mapping[str, Any]) -> bool:
    """Return True if the adjusted p-value of a test is below the level."""
    adjusted = record.get("p_holm")
    return adjusted is not None and bool(adjusted <= LEVEL)


def number(value: float) -> str:
    """Return a value, or a large count."""
    return shown(value if abs(value) >= 5e-5 else 0.0, ",.0f" if abs(value) >= 100 else ".4f")


def _cell(record: Mapping[str, Any] | None) -> Cell | None:
    if record is None:
        return None
    text, score = number(record["value"]), (record["value"], None, None)
    if "p" not in record:
        return Cell(text, score=score)
    chance = f"{number(record['chance_low'])} \N{EN DASH} {number(record['chance_high'])}"
    return Cell(f"{text}*" if starred(record) else text, small=f"{chance}, p = {record['p']:.3g}", score=score)


@with_config(STRICT)
class TendenciesRecord(TypedDict):
    """``tendencies/tendencies.json``."""

    against: Literal["truth", "sample"]
    words: Count
    collapsed: Any
    samples: list[dict[str, object]]
    tokens: NotRequired[Count]  #: in how many different words are counted
    draws_needed: NotRequired[Count | None]  #: of each test, for stars to be possible
    notes: list[str]
    figures: dict[str, object]  #: by scheme, what is drawn
    records: list[ScoreRecord]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables, figures and words for the template; None if no text was sampled."""
    record_of_run = run.record("tendencies/tendencies.json", TendenciesRecord)
    if record_of_run is None:
        return None
    schemes: dict[str, dict[str, dict[str, Record]]] = {}
    for record in record_of_run["records"]:
        schemes.setdefault(record["scheme"], {}).setdefault(record["source"], {})[record["name"]] = record
    other = "the truth" if record_of_run["against"] == "truth" else "the reference"
    tables = [
        {
            **_table(scheme, rows, record_of_run["samples"], other),
            "figure": tendencies_figure(record_of_run["figures"][scheme], f"tendencies{number}"),
        }
        for number, (scheme, rows) in enumerate(schemes.items())
    ]
    return {
        "tables": tables,
        "other": other,
        "most": _most(tables),
        "size": max(sample["sentences"] for sample in record_of_run["samples"]),
        "tokens": record_of_run.get("tokens"),
        "words": record_of_run["words"] if record_of_run["collapsed"] else None,
        "left_out": _left_out(record_of_run["samples"]),
        "notes": record_of_run["notes"],
    }


def _table(scheme: str, rows: Mapping[str, Findings], samples: Sequence[Record], other: str) -> dict[str, object]:
    """Return the table and reading of one decoding scheme."""
    models = [name for name in rows if name not in (ORACLE, "reference")]
    readings = {name: _reading(rows[name], other, rows) for name in models}
    sizes = {sample["model"]: sample["sentences"] for sample in samples if sample["scheme"] == scheme}
    return {
        "scheme": scheme,
        "measures": measures_table(rows, scheme, sizes),
        "oracle_differs": any(starred(rows[ORACLE].get(measure, {})) for measure in HEADLINE),
        "coarse": _coarse(rows, models),
        "reading": [{"model": name, "far": far, "words": words} for name, (far, words) in readings.items()],
    }


def _coarse(rows: Mapping[str, Findings], names: Sequence[str]) -> int | None:
    """Return how many draws a star takes in the worst case, if there are fewer; None if there are enough."""
    tests = [rows[name][m] for name in names for m in HEADLINE if m in rows[name] and "p" in rows[name][m]]
    fewest = min((test["draws"] for test in tests), default=0)
    needed = round(len(tests) / LEVEL)
    return needed if tests and fewest + 1 < needed else None


def _usual(row: Findings, rows: Mapping[str, Findings], measure: str = "types") -> float | None:
    """Return the expected value of a measure without a direction: its mean by chance, or the reference's value."""
    record = row.get(measure)
    if record is not None and "chance_mean" in record:
        return float(record["chance_mean"])
    other = rows.get("reference", {}).get(measure)
    return None if other is None else float(other["value"])


def _reading(row: Findings, other: str, rows: Mapping[str, Findings]) -> tuple[float, list[str]]:
    """Return the largest multiple of chance, and all measures beyond chance in words, the largest first.

    Beyond chance are measures with a star, and measures beyond every draw: the strongest result of so many draws, since
    with few draws no star is possible.
    """
    findings = []
    for measure in HEADLINE:
        if measure in row and (starred(row[measure]) or _beyond_all(row[measure])):
            far = _far(row[measure])
            findings.append((far, f"{_words(measure, row, other, rows)}, {_multiple(row[measure], far)}"))
    findings.sort(key=lambda pair: -pair[0])
    return (findings[0][0] if findings else 0.0), [words for _, words in findings]


def _beyond_all(record: Record) -> bool:
    """Return True if the p-value is the least that its number of draws can give."""
    return "p" in record and bool(record["p"] * (record["draws"] + 1) < 1.5)


def _multiple(record: Record, far: float) -> str:
    """Return a distance as a multiple of its null quantile, in words, and whether any draw comes near."""
    times = f"{far:,.0f}" if far >= 9.95 else f"{far:.1f}"
    if math.isinf(far):
        text = "by chance there is no difference at all"
    elif record["name"] == "types":
        text = f"{times} times half the width of the middle 95% of chance"
    else:
        text = f"{KIND.get(record['name'], 'KS')} {times} times the 97.5% quantile of chance"
    if not _beyond_all(record):
        return text
    return f"{text}, beyond all {record['draws']:,} {SAMPLED.get(record.get('null', ''), 'draws')}"


def _far(record: Record) -> float:
    """Return a distance divided by the 97.5 % quantile of its null distribution.

    For a number, return its difference from the mean by chance, divided by the half-width of the middle 95%.
    """
    if record["name"] == "types":
        half = (record["chance_high"] - record["chance_low"]) / 2
        away = abs(record["value"] - record["chance_mean"])
        return float(away / half) if half > 0.0 else math.inf if away > 0.0 else 0.0
    return float(record["value"] / record["chance_high"]) if record["chance_high"] > 0.0 else math.inf


def _words(measure: str, row: Findings, other: str, rows: Mapping[str, Findings]) -> str:
    value = row[measure]["value"]
    if measure == "length_ks":
        mean = row.get("length_mean_difference", {"value": 0.0})["value"]
        text = f"sentences are {abs(mean):.1f} words {'longer' if mean > 0 else 'shorter'} than in {other}"
        if abs(mean) < 0.05:
            text = "sentence lengths are distributed differently"
        impossible = row.get("length_impossible", {"value": 0.0})["value"]
        return text + (f" ({impossible:.1%} have a length that no sentence can have)" if impossible >= 0.0005 else "")
    if measure in ("stopwords_ks", "symbols_ks"):
        label = measure.removesuffix("_ks")
        mean = 100 * row.get(f"{label}_mean_difference", {"value": 0.0})["value"]
        if abs(mean) < 0.05:
            return f"{label} are spread over sentences in another way"
        return f"the share of {label} is {abs(mean):.1f} points {'higher' if mean > 0 else 'lower'}"
    if measure == "unigram_tv":
        chance = row[measure]["chance_mean"]
        outside = row.get("outside_share", {"value": 0.0})["value"]
        more = f"; {outside:.1%} are words that the grammar does not have" if outside >= 0.0005 else ""
        return f"{value:.1%} of the tokens would have to be other words (by chance {chance:.1%}{more})"
    if measure == "rank_ks":
        s, usual = row.get("zipf_exponent"), _usual(row, rows, "zipf_exponent")
        if s is None or usual is None:
            return "words of some ranks are too frequent"
        more = "more" if s["value"] > usual else "less"
        return f"frequent words are {more} frequent (Zipf exponent {s['value']:.3f}, by chance {usual:.3f})"
    usual = _usual(row, rows)
    gap = value - (usual or 0.0)
    return f"there are {abs(gap):,.0f} {'more' if gap > 0 else 'fewer'} different words in as many tokens"


def _most(tables: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the measure that differs most of all."""
    rows = [(reading["far"], table["scheme"], reading) for table in tables for reading in table["reading"]]
    if not rows:
        return None
    _, scheme, reading = max(rows, key=lambda row: row[0])
    if not reading["words"]:
        return "None of these measures distinguishes a sample from what it is compared with."
    return f"What differs most is {scheme} of {reading['model']}: {reading['words'][0]}."


def _left_out(samples: Sequence[Record]) -> list[str]:
    """Return sentences on the samples that are excluded, one for each reason."""
    sentences = []
    for key, why in (
        ("cut", "that reached the maximum length"),
        ("empty", "without words"),
    ):
        parts = [f"{s['model']} {s['scheme']} {s[key]:,}" for s in samples if s[key]]
        if parts:
            total = sum(s[key] for s in samples)
            sentences.append(f"Left out: {count(total, 'sentence')} {why} ({listed(parts)}).")
    return sentences
