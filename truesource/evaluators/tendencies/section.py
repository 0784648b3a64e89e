"""What the section on tendencies shows: tables by decoding scheme, and a reading of them in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

from truesource.evaluation.core.signature import parts_of
from truesource.evaluators.tendencies.records import TendenciesRecord
from truesource.report.finished_run import FinishedRun, Record
from truesource.report.words import count, listed

LEVEL = 0.05
ORACLE = "oracle"
COLUMNS = {
    "length_ks": "sentence length",
    "stopwords_ks": "stopwords",
    "symbols_ks": "symbols",
    "unigram_tv": "words",
    "rank_ks": "rank-frequency",
    "types": "different words",
}  #: measure and heading of each column
KIND = {"unigram_tv": "TV", "types": "number"}  #: of a column; KS where it is not named
Findings = Mapping[str, Record]  #: records of one sample by name


def section(run: FinishedRun) -> dict[str, Any] | None:
    """Tables, figures and words for the template; None where no text was drawn."""
    found = run.record("tendencies/tendencies.json", TendenciesRecord)
    if found is None:
        return None
    schemes: dict[str, dict[str, dict[str, Record]]] = {}
    for record in found["records"]:
        schemes.setdefault(record["scheme"], {}).setdefault(record["source"], {})[record["name"]] = record
    other = "the truth" if found["against"] == "truth" else "the reference"
    tables = [_table(run, scheme, rows, found["samples"], other) for scheme, rows in schemes.items()]
    return {
        "tables": tables,
        "other": other,
        "most": _most(tables),
        "size": max(sample["sentences"] for sample in found["samples"]),
        "words": found["words"] if found["collapsed"] else None,
        "left_out": _left_out(found["samples"]),
        "notes": [note for note in found["notes"] if "adjusted p-value" not in note],
    }


def _table(
    run: FinishedRun, scheme: str, rows: Mapping[str, Findings], samples: Sequence[Record], other: str
) -> dict[str, Any]:
    """Cells, floor, figure and reading of one decoding scheme."""
    names = [name for name in rows if name != "reference"]
    shown = [measure for measure in COLUMNS if any(measure in rows[name] for name in names)]
    models = [name for name in names if name != ORACLE]
    stars = starred({name: rows[name] for name in names}, shown)
    sizes = {sample["model"]: sample["sentences"] for sample in samples if sample["scheme"] == scheme}
    reading = [
        {"model": name, "far": far, "words": words}
        for name in models
        for far, words in [_reading(rows[name], shown, {m for m in shown if (name, m) in stars}, other, rows)]
    ]
    return {
        "scheme": scheme,
        "columns": [(COLUMNS[measure], KIND.get(measure, "KS")) for measure in shown],
        "rows": [
            {
                "model": name,
                "sentences": sizes.get(name),
                "cells": [_cell(rows[name], measure, (name, measure) in stars, rows) for measure in shown],
            }
            for name in names
        ],
        "floor": [_floor(rows[ORACLE].get(measure)) for measure in shown] if ORACLE in rows else [],
        "told": any(name == ORACLE for name, _ in stars),
        "coarse": _coarse(rows, models, shown),
        "tokens": _tokens(rows),
        "reading": reading,
        "figure": run.figure(f"tendencies/{scheme}.svg"),
    }


def starred(rows: Mapping[str, Findings], shown: Sequence[str]) -> set[tuple[str, str]]:
    """Samples and measures of a table whose adjusted p-values, as the JSON has them, are at most .05."""
    return {(n, m) for n in rows for m in shown if m in rows[n] and rows[n][m].get("p_holm", 1.0) <= LEVEL}


def _cell(row: Findings, measure: str, star: bool, rows: Mapping[str, Findings]) -> dict[str, str] | None:
    record = row.get(measure)
    if record is None:
        return None
    mean = row.get(f"{measure.removesuffix('_ks')}_mean_difference")
    small = ""
    if measure == "length_ks" and mean is not None:
        small = f"{mean['value']:+.2f} words"
    elif mean is not None:
        small = f"{100 * mean['value']:+.1f} points"
    elif measure == "rank_ks" and "zipf_exponent" in row:
        small = f"s = {row['zipf_exponent']['value']:.3f}"
    elif measure == "types" and (usual := _usual(row, rows)) is not None:
        small = f"{record['value'] - usual:+,.0f}"
    small = small.replace("-", "\N{MINUS SIGN}")
    return {"value": _number(record["value"]), "small": small, "star": "*" if star else ""}


def _floor(record: Record | None) -> dict[str, str] | None:
    """Mean by chance, and what it does not exceed in 97.5% (or 95% between) of the draws."""
    if record is None or "chance_mean" not in record:
        return None
    low = f"{_number(record['chance_low'])} \N{EN DASH} " if record["name"] == "types" else "to "
    return {"value": _number(record["chance_mean"]), "small": f"{low}{_number(record['chance_high'])}"}


def _coarse(rows: Mapping[str, Findings], names: Sequence[str], shown: Sequence[str]) -> int | None:
    """How many draws a star takes in the worst case, if there are fewer; None if there are enough."""
    tests = [rows[name][m] for name in names for m in shown if m in rows[name] and "p" in rows[name][m]]
    fewest = min((test["draws"] for test in tests), default=0)
    needed = round(len(tests) / LEVEL)
    return needed if tests and fewest + 1 < needed else None


def _tokens(rows: Mapping[str, Findings]) -> int | None:
    """In how many tokens different words were counted."""
    for row in rows.values():
        parts = parts_of(row["types"]["signature"]) if "types" in row else {}
        if size := parts.get("rarefied-to", parts.get("of")):
            return int(size.removesuffix("tokens"))
    return None


def _usual(row: Findings, rows: Mapping[str, Findings], measure: str = "types") -> float | None:
    """What a measure without a direction of its own is compared with: its mean by chance, or that of the reference."""
    record = row.get(measure)
    if record is not None and "chance_mean" in record:
        return float(record["chance_mean"])
    other = rows.get("reference", {}).get(measure)
    return None if other is None else float(other["value"])


def _reading(
    row: Findings, shown: Sequence[str], stars: Set[str], other: str, rows: Mapping[str, Findings]
) -> tuple[float, list[str]]:
    """How far the farthest measure is beyond chance, and all that are beyond it in words, the farthest first.

    Beyond chance are measures with a star, and those that are beyond every draw: more than that so many draws cannot
    show, and where they are few a star is out of reach.
    """
    found = []
    for measure in shown:
        if measure in row and (measure in stars or _beyond_all(row[measure])):
            far = _far(row[measure])
            found.append((far, f"{_words(measure, row, other, rows)}, {_multiple(row[measure], far)}"))
    found.sort(key=lambda pair: -pair[0])
    return (found[0][0] if found else 0.0), [words for _, words in found]


def _beyond_all(record: Record) -> bool:
    """Whether the p-value is the least that its number of draws can give."""
    return "p" in record and bool(record["p"] * (record["draws"] + 1) < 1.5)


def _multiple(record: Record, far: float) -> str:
    """What the multiple of a distance is of, and whether any draw comes near."""
    times = f"{far:,.0f}" if far >= 9.95 else f"{far:.1f}"
    if math.isinf(far):
        text = "by chance there is no difference at all"
    elif record["name"] == "types":
        text = f"{times} times half the width of the middle 95% of chance"
    else:
        text = f"{KIND.get(record['name'], 'KS')} {times} times what chance exceeds in 1 case of 40"
    if not _beyond_all(record):
        return text
    parts = parts_of(record["signature"])
    drawn = "samples of the truth" if "chance" in parts else "draws"
    if "permutations" in parts.get("null", ""):
        drawn = "permutations"
    return f"{text}, beyond all {record['draws']:,} {drawn}"


def _far(record: Record) -> float:
    """How many times what chance exceeds in 1 case of 40 a distance is.

    Of a number: its difference from the mean by chance, over half the width of the middle 95%.
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
        text = f"sentences are {abs(mean):.1f} words {'longer' if mean > 0 else 'shorter'} than those of {other}"
        if abs(mean) < 0.05:
            text = "sentence lengths are spread in another way"
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
    """What differs most of all."""
    rows = [(reading["far"], table["scheme"], reading) for table in tables for reading in table["reading"]]
    if not rows:
        return None
    _, scheme, reading = max(rows, key=lambda row: row[0])
    if not reading["words"]:
        return "No sample can be told from what it is compared with by any of these measures."
    return f"What differs most is {scheme} of {reading['model']}: {reading['words'][0]}."


def _left_out(samples: Sequence[Record]) -> list[str]:
    """What is not in the samples, a sentence a reason."""
    found = []
    for key, why in (("cut", "cut at the greatest length, not ended by the model"), ("empty", "of no words")):
        parts = [f"{s['model']} {s['scheme']} {s[key]:,}" for s in samples if s[key]]
        if parts:
            total = sum(s[key] for s in samples)
            found.append(f"Left out: {count(total, 'sentence')} {why} ({listed(parts)}).")
    return found


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4f}"
