"""Rank and linear agreement of token log probabilities: Spearman rho and three kinds of R2."""

from __future__ import annotations

import numpy as np
from scipy import stats

from evaluation.measures.bootstrap import Interval, resampled_statistic
from evaluation.measures.paired import FloatArray, Paired

REPLICATES = 200  #: fewer than for perplexity, as every resample is ranked anew


def spearman(x: FloatArray, y: FloatArray) -> float:
    """Spearman's rho with ties at their mean rank; 1 for two equal arrays, constant ones too."""
    if np.array_equal(x, y):
        return 1.0
    return _pearson(stats.rankdata(x), stats.rankdata(y))


def r2_pearson(model: FloatArray, oracle: FloatArray) -> float:
    """Squared Pearson correlation of the log probabilities."""
    return 1.0 if np.array_equal(model, oracle) else _pearson(model, oracle) ** 2


def r2_identity(model: FloatArray, oracle: FloatArray) -> float:
    """``1 - MSE / Var(ln P)``: the share of the oracle's variance that the model's values explain as they are."""
    return _identity(model, oracle, oracle)


def r2_released(model: FloatArray, oracle: FloatArray) -> float:
    """``1 - MSE / Var(ln Q)``, as the code of Jumelet & Zuidema (2023) computes it."""
    return _identity(model, oracle, model)


def _identity(model: FloatArray, oracle: FloatArray, reference: FloatArray) -> float:
    error, variance = float(np.mean((oracle - model) ** 2)), float(np.var(reference))
    if error == 0.0:
        return 1.0
    return 1.0 - error / variance if variance > 0.0 else 0.0


def _pearson(x: FloatArray, y: FloatArray) -> float:
    """Pearson correlation; 0 where one side is constant, since nothing then varies together."""
    dx, dy = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((dx @ dx) * (dy @ dy)))
    return float(np.clip((dx @ dy) / scale, -1.0, 1.0)) if scale > 0.0 else 0.0


def correlations(paired: Paired, seed: int = 0) -> dict[str, Interval]:
    """``rho``, ``r2_pearson``, ``r2_identity`` and ``r2_released`` with sentence-bootstrap intervals."""
    found = {}
    for name, measure in (
        ("rho", spearman),
        ("r2_pearson", r2_pearson),
        ("r2_identity", r2_identity),
        ("r2_released", r2_released),
    ):
        low, high = resampled_statistic(
            lambda at, f=measure: f(paired.model[at], paired.oracle[at]),  # type: ignore[misc]
            paired.sentence,
            seed=seed,
            replicates=REPLICATES,
        )
        found[name] = Interval(measure(paired.model, paired.oracle), float(low), float(high))
    return found
