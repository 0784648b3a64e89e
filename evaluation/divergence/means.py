"""Means of measures over the contexts of sentences, with intervals from resampling sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.divergence.tables import few
from truesource.evaluation.measures.bootstrap import ci_part, ends, proportion, resampled_ratios
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Column:
    """One measure of the T contexts, with parts of its signature."""

    values: FloatArray  #: (T,) may hold inf, or NaN where undefined, not both
    parts: Mapping[str, object]  #: parts of the signature in addition to the common ones


def mean_scores(
    columns: Mapping[str, Column], sentence: IntArray, shared: Mapping[str, object], seed: int
) -> dict[str, Score]:
    """Compute the mean over contexts of each measure, with its interval.

    A measure that is infinite in some contexts has no mean. Then ``<name>_where_finite`` is the mean over the others,
    whose number is in its signature, if there are any; ``<name>_infinite`` is the share of infinite contexts, and
    is 0 for a measure that could have been infinite. Contexts with an undefined measure (NaN) do not count;
    the signature has the number of the others.

    Args:
        columns: the measures.
        sentence: (T,) sentence of each context, ascending.
        shared: parts of every signature.
        seed: seed of the bootstrap.
    """
    starts = np.flatnonzero(np.diff(sentence, prepend=-1))
    names: list[str] = []
    totals: list[FloatArray] = []
    counts: list[FloatArray] = []
    signed: list[Mapping[str, object]] = []

    def add(name: str, values: FloatArray, counted: FloatArray, parts: Mapping[str, object]) -> None:
        names.append(name)
        totals.append(np.add.reduceat(values, starts))
        counts.append(np.add.reduceat(counted, starts))
        signed.append(parts)

    for name, column in columns.items():
        undefined = np.isnan(column.values)
        if undefined.all():
            continue
        if undefined.any():
            parts = {**column.parts, "contexts": f"{int((~undefined).sum())}/{len(undefined)}"}
            add(name, np.where(undefined, 0.0, column.values), (~undefined).astype(np.float64), parts)
            continue
        finite = np.isfinite(column.values)
        finite_values = np.where(finite, column.values, 0.0)
        if finite.all():
            add(name, finite_values, np.ones(len(finite_values)), column.parts)
        elif finite.any():
            parts = {**column.parts, "contexts": f"{int(finite.sum())}/{len(finite)}"}
            add(f"{name}_where_finite", finite_values, finite.astype(np.float64), parts)
        if column.parts.get("may") == "infinite":
            add(f"{name}_infinite", (~finite).astype(np.float64), np.ones(len(finite_values)), {"unit": "share"})
    total, count = np.stack(totals, axis=1), np.stack(counts, axis=1)
    intervals = resampled_ratios(total, count, seed=seed)
    intervals = np.clip(intervals, *np.array([bounds(column_parts) for column_parts in signed]).T)
    value = total.sum(axis=0) / count.sum(axis=0)
    return {
        name: Score(
            name,
            float(value[i]),
            signature({**shared, **{key: part for key, part in signed[i].items() if key != "may"}, **few(count[:, i])}),
            *ends(*intervals[:, i]),
        )
        for i, name in enumerate(names)
    }


def rows_kl(log_p: FloatArray, log_q: FloatArray) -> FloatArray:
    """Compute KL(P || Q) of each row of two tables (T, E) of logarithms, (T,) nats; inf if Q lacks an event of P."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(log_p > -np.inf, np.exp(log_p) * (log_p - log_q), 0.0).sum(axis=1))


def share_of(name: str, there: BoolArray, parts: Mapping[str, object]) -> Score:
    """Compute the share of True in independent samples, with the interval of Wilson (1927)."""
    share = proportion(there.astype(np.float64), np.ones(len(there)))
    assert share is not None
    how = {"unit": "share", "samples": len(there), "ci": ci_part(len(there), 0, method="wilson")}
    return Score(name, share.value, signature({**parts, **how}), share.low, share.high)


def bounds(parts: Mapping[str, object]) -> tuple[float, float]:
    """Return the range of a measure: of shares, and of divergences and entropies in every context."""
    low = -math.inf if parts.get("estimator") == "paired" or parts.get("may") == "negative" else 0.0
    return low, 1.0 if parts.get("unit") == "share" else math.inf


def variance_ratio(plain: FloatArray, exact: FloatArray, counts: FloatArray) -> float | None:
    """Compute the variance ratio of the means of two estimators, from totals (N,) and contexts (N,) per sentence.

    It uses the linearised variance of a ratio. None if the second does not vary.
    """
    spread = [
        float(np.square(total - total.sum() / counts.sum() * counts).sum() / counts.sum() ** 2)
        for total in (plain, exact)
    ]
    return spread[0] / spread[1] if spread[1] > 1e-24 else None
