"""Divergence broken down: by where a context stands, and by what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.divergence.contexts import Contexts, DividedDivergence
from truesource.evaluation.divergence.estimate import few
from truesource.evaluation.measures.bootstrap import ends, resampled_ratios
from truesource.grammar.support.arrays import IntArray

MEASURES = ("kl", "js", "tv", "entropy_truth", "agreement")
SHARES = ("tv", "agreement")  #: those that are at most 1


@dataclass(frozen=True)
class BreakdownRow:
    """One row of a table."""

    group: str
    tokens: float  #: contexts, or expected tokens of a group of words
    infinite: int  #: contexts in which KL(P || Q) is infinite; they are left out of ``kl``
    scores: dict[str, Score]  #: none of a group where nothing is finite


def by_context(measured: Contexts, key: IntArray, shared: Mapping[str, object], seed: int) -> list[BreakdownRow]:
    """Means over the contexts of each value of ``key`` (T,), with intervals where enough sentences have some."""
    values = np.stack([measured.column(name) for name in MEASURES], axis=1)
    finite = np.isfinite(values)
    keys, inverse = np.unique(key, return_inverse=True)
    row = np.cumsum(np.diff(measured.sentence, prepend=-1) != 0) - 1
    size = (int(row[-1]) + 1, len(keys), len(MEASURES))
    total, count = np.zeros(size), np.zeros(size)
    np.add.at(total, (row, inverse), np.where(finite, values, 0.0))
    np.add.at(count, (row, inverse), finite)
    contexts, infinite = np.bincount(inverse), np.bincount(inverse, ~finite[:, 0])
    intervals = resampled_ratios(total.reshape(size[0], -1), count.reshape(size[0], -1), seed=seed)
    intervals = np.clip(intervals.reshape(2, *size[1:]), 0.0, [1.0 if name in SHARES else np.inf for name in MEASURES])
    rows = []
    for g, value in enumerate(keys.tolist()):
        scores = {}
        for m, name in enumerate(MEASURES):
            if n := count[:, g, m].sum():
                parts = {
                    **shared,
                    "group": value,
                    "contexts": int(n),
                    "estimator": "rao-blackwell",
                    **few(count[:, g, m]),
                }
                mean = total[:, g, m].sum() / n
                scores[name] = Score(name, float(mean), signature(parts), *ends(*intervals[:, g, m]))
        rows.append(BreakdownRow(str(value), float(contexts[g]), int(infinite[g]), scores))
    return rows


def by_group(divided: DividedDivergence, shared: Mapping[str, object], seed: int) -> list[BreakdownRow]:
    """Mean of ln P - ln Q over the tokens of each group of words, expected under the truth, with intervals.

    Groups that the truth never expects are left out. Their means times their tokens sum to KL(P || Q).
    """
    intervals = resampled_ratios(divided.part, divided.share, seed=seed)
    rows = []
    for g, name in enumerate(divided.names):
        tokens = float(divided.tokens[g])
        if tokens == 0.0:
            continue
        scores = {}
        finite = float(divided.share[:, g].sum())
        if finite > 0.0:
            parts = {**shared, "group": name, "tokens": f"{finite:.6g}", "estimator": "rao-blackwell"}
            parts |= few(divided.share[:, g])
            mean = float(divided.part[:, g].sum() / finite)
            scores["kl"] = Score("kl", mean, signature(parts), *ends(*intervals[:, g]))
        rows.append(BreakdownRow(name, tokens, int(divided.infinite[g]), scores))
    return rows
