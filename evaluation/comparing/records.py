"""A comparison as records for JSON, each number with its signature."""

from __future__ import annotations

from typing import Any

from truesource.evaluation.comparing.comparison import ModelComparison, ModelRow, PairedDifference
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature


def comparison_records(comparison: ModelComparison) -> list[dict[str, Any]]:
    """One record a number: of the oracle, of each model and each of several seeds, and of each difference."""
    return [
        *(record for row in (comparison.oracle, *comparison.rows) for record in row_records(row)),
        *(difference_record(comparison, found) for found in comparison.differences),
    ]


def row_records(row: ModelRow) -> list[dict[str, Any]]:
    """A record a measure, with the number of seeds and the standard deviation over them; then those of each seed."""
    k = len(row.model.seeds)
    objective = row.model.objective
    head = {"model": row.name, "objective": objective, "seeds": k}
    records = []
    for name, value in row.measures.items():
        own = {**row.parts, **({"estimator": "paired"} if name == "kl" else {})}
        score = Score(name, value.value, signature(own), value.low, value.high)
        records.append({**head, **score.as_record(), "sd": row.deviations.get(name)})
    for scores in row.model.seeds:
        if scores.exact is not None:
            one = {"model": row.name, "objective": objective, "seed_of": scores.label, "seed": scores.seed}
            records.append({**one, **scores.exact.as_record(), "name": f"exact_{scores.exact.name}"})
    if k > 1:
        for scores, values in zip(row.model.seeds, row.by_seed, strict=True):
            one = {"model": row.name, "objective": objective, "seed_of": scores.label, "seed": scores.seed}
            own = {**row.parts, "seeds": 1, "ci": "none/one-seed"}
            records += [
                {**one, "name": name, "value": value, "signature": signature(own)} for name, value in values.items()
            ]
    return records


def difference_record(comparison: ModelComparison, found: PairedDifference) -> dict[str, Any]:
    """``kl_difference``, nats a token, with its p-value as it is and adjusted."""
    contrast = found.contrast
    score = Score("kl_difference", contrast.value, signature(found.parts), contrast.low, contrast.high)
    head = {"model": found.model, "baseline": found.baseline, "objective": comparison.objective}
    return {**head, **score.as_record(), "p": contrast.p, "p_adjusted": found.p_adjusted}
