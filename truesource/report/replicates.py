"""One row a model: that of a model trained with several seeds has means over them, from ``comparison.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from truesource.report.records import Record

COMPARED = ("ppl", "bound", "relative_ppl")  #: measures with an interval over sentences and seeds
AGREEMENT = ("rho", "r2_pearson", "r2_identity")  #: measures whose mean has none
SPREAD = ("ppl", "relative_ppl", *AGREEMENT)  #: measures whose spread over seeds is shown
SAME = ("parameters", "tokenizer", "loaded", "excluded", "sentences", "tokens", "impossible_model", "impossible_oracle")


def summarised(rows: Sequence[Record], comparison: Sequence[Record]) -> list[Record]:
    """The rows with those of all seeds of a model as one.

    Args:
        rows: of ``results.json``.
        comparison: records of `ModelComparison.records`.

    Returns:
        Rows as before; one of several seeds has them as ``replicates``, and the standard deviation of each measure over
        seeds as ``sd``.
    """
    found = {(r["model"], r["name"]): r for r in comparison if "seeds" in r}
    groups: dict[str, list[Record]] = {}
    for row in rows:
        groups.setdefault(f"{row['objective']}:{row.get('replicate_of') or row['model']}", []).append(row)
    return [_summary(of, found) if _replicated(of, found) else of[0] for of in groups.values()]


def _replicated(rows: Sequence[Record], found: Mapping[tuple[str, str], Record]) -> bool:
    return rows[0].get("replicate_of") is not None and (rows[0]["replicate_of"], "relative_ppl") in found


def _summary(rows: Sequence[Record], found: Mapping[tuple[str, str], Record]) -> Record:
    name = rows[0]["replicate_of"]
    summary: dict[str, Any] = {**dict.fromkeys(rows[0]), "model": name, "objective": rows[0]["objective"]}
    summary |= {key: rows[0].get(key) for key in SAME if len({row.get(key) for row in rows}) == 1}
    summary["tokens"] = rows[0]["tokens"]
    sd: dict[str, float | None] = {}
    for measure in COMPARED:
        record = found[name, measure]
        summary[measure], sd[measure] = record["value"], record["sd"]
        summary[f"{measure}_low"], summary[f"{measure}_high"] = record["low"], record["high"]
    for measure in (*AGREEMENT, "bound_unconditioned"):
        values = [row[measure] for row in rows if row.get(measure) is not None]
        summary[measure] = fmean(values) if values else None
        sd[measure] = stdev(values) if len(values) > 1 else None
    times = [row["training_seconds"] for row in rows if row.get("training_seconds") is not None]
    sd = {measure: value for measure, value in sd.items() if measure in SPREAD}
    summary["training_seconds"] = fmean(times) if times else None
    summary["signature"] = found[name, "relative_ppl"]["signature"]
    return {**summary, "sd": {**dict.fromkeys(("bound", "bound_unconditioned")), **sd}, "replicates": list(rows)}


def differences(comparison: Sequence[Record], objective: str) -> list[Record]:
    """The paired differences of the models of one objective to their baseline."""
    return [r for r in comparison if r["name"] == "kl_difference" and r["objective"] == objective]
