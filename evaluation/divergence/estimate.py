"""Means over contexts with intervals from resampled sentences, and what becomes of infinite values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.measures.bootstrap import ends, resampled_ratios
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.printable import few_code, too_few


@dataclass(frozen=True, eq=False)
class Column:
    """One measure of the T contexts, and how it is signed."""

    values: FloatArray  #: (T,) may hold inf, or NaN where undefined, not both
    parts: Mapping[str, object]  #: of the signature, besides those that all share


def mean_scores(
    columns: Mapping[str, Column], sentence: IntArray, shared: Mapping[str, object], seed: int
) -> dict[str, Score]:
    """Mean over contexts of each measure, with its interval.

    A measure that is infinite in some contexts has no mean. Then ``<name>_where_finite`` is the mean over the others,
    whose number stands in its signature, if there are any; ``<name>_infinite`` is the share of infinite contexts, and
    is there, 0, for a measure that could have been infinite. Contexts where a measure is undefined (NaN) do not count;
    the signature has the number of the others.

    Args:
        columns: the measures.
        sentence: (T,) sentence of each context, ascending.
        shared: parts of every signature.
        seed: of the bootstrap.
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
        known = np.where(finite, column.values, 0.0)
        if finite.all():
            add(name, known, np.ones(len(known)), column.parts)
        elif finite.any():
            parts = {**column.parts, "contexts": f"{int(finite.sum())}/{len(finite)}"}
            add(f"{name}_where_finite", known, finite.astype(np.float64), parts)
        if column.parts.get("may") == "infinite":
            add(f"{name}_infinite", (~finite).astype(np.float64), np.ones(len(known)), {"unit": "share"})
    total, count = np.stack(totals, axis=1), np.stack(counts, axis=1)
    intervals = resampled_ratios(total, count, seed=seed)
    intervals = np.clip(intervals, *np.array([bounds(own) for own in signed]).T)
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


def bounds(parts: Mapping[str, object]) -> tuple[float, float]:
    """Between which values a measure lies: shares, and what is a divergence or an entropy in every context."""
    low = -math.inf if parts.get("estimator") == "paired" else 0.0
    return low, 1.0 if parts.get("unit") == "share" else math.inf


def few(count: FloatArray) -> dict[str, object]:
    """The part of a signature that says why there is no interval, if in too few sentences (N,) something counts."""
    sentences = int((count > 0.0).sum())
    return {"ci": f"none/{few_code()}"} if too_few(sentences) else {}


def variance_ratio(plain: FloatArray, exact: FloatArray, counts: FloatArray) -> float | None:
    """Variance of the mean of one estimator over that of another, from per-sentence totals (N,) and contexts (N,).

    By the linearised variance of a ratio. None where the second does not vary.
    """
    spread = [
        float(np.square(total - total.sum() / counts.sum() * counts).sum() / counts.sum() ** 2)
        for total in (plain, exact)
    ]
    return spread[0] / spread[1] if spread[1] > 1e-24 else None
