"""Rank and linear agreement of token log probabilities: Spearman rho and three kinds of R2."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from truesource.evaluation.measures.bootstrap import LARGE, TAILS, Interval, ends, resampled_measures
from truesource.evaluation.measures.paired import Paired
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.printable import too_few
from truesource.grammar.support.settings import DEFAULT_SEED

CELLS = 2**20  #: numbers that an array of the jackknife holds, unless a single sample has more
NEAR_ONE = 1.0 - 1e-12  #: largest correlation for Fisher's z


def spearman(x: FloatArray, y: FloatArray) -> float:
    """Return Spearman's rho with ties at their mean rank; 1 for two equal arrays, constant ones too."""
    if np.array_equal(x, y):
        return 1.0
    return _pearson(_mean_ranks(x), _mean_ranks(y))


def _mean_ranks(values: FloatArray) -> FloatArray:
    """Return ranks from 1, ties at their mean rank; `scipy.stats.rankdata` takes half a second to import."""
    _, place, number = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(number) - (number - 1) / 2.0)[place])


def r2_pearson(model: FloatArray, oracle: FloatArray) -> float:
    """Return the squared Pearson correlation of the log probabilities."""
    return 1.0 if np.array_equal(model, oracle) else _pearson(model, oracle) ** 2


def r2_identity(model: FloatArray, oracle: FloatArray) -> float:
    """Return ``1 - MSE / Var(ln P)``: the share of the oracle's variance explained by the model's unscaled values."""
    return _identity(model, oracle, oracle)


def r2_released(model: FloatArray, oracle: FloatArray) -> float:
    """Return ``1 - MSE / Var(ln Q)``, as the code of Jumelet & Zuidema (2023) computes it."""
    return _identity(model, oracle, model)


CORRELATIONS = {
    "rho": spearman,
    "r2_pearson": r2_pearson,
    "r2_identity": r2_identity,
    "r2_released": r2_released,
}


def correlations(paired: Paired, seed: int = DEFAULT_SEED) -> dict[str, Interval]:
    """Return ``rho``, ``r2_pearson``, ``r2_identity``, ``r2_released`` with intervals; rho needs no resampling."""
    model, oracle = paired.model, paired.oracle
    intervals = {"rho": spearman_ends(model, oracle, paired.sentence), **_r2_ends(paired, seed)}
    return {name: Interval(measure(model, oracle), *ends(*intervals[name])) for name, measure in CORRELATIONS.items()}


def spearman_ends(x: FloatArray, y: FloatArray, sentence: NDArray[np.integer]) -> FloatArray:
    """Return the interval of `spearman` by Student's t on the scale of Fisher's z, with the jackknife's error, (2,).

    With 10 to 20 unequal sentences it has nominal coverage, which the studentised bootstrap lacks: a resample has ties
    that no sample has. From `LARGE` sentences the error is from the influences of all sentences, the limit of the
    jackknife. It is NaN for fewer than `FEWEST` sentences, and if one side is constant, or would be without some
    sentence.

    Args:
        x: (T,)
        y: (T,)
        sentence: (T,) sentence, or another independent unit, of each position, ascending.
    """
    starts = np.flatnonzero(np.diff(sentence, prepend=sentence[:1] - 1))
    n = len(starts)
    if too_few(n):
        return np.full(2, np.nan)
    if np.array_equal(x, y):
        return np.ones(2)
    ranked = _Ranks(x), _Ranks(y)
    rho, influence = _weighted_spearman(*ranked, np.ones((1, len(x))), starts)
    value, slope = _fisher(rho)
    if n >= LARGE:
        variance = n / (n - 1) * float(np.square(influence * slope).sum())
    else:
        row = np.repeat(np.arange(n), np.diff(starts, append=len(x)))
        step = max(1, CELLS // len(x))
        without = [
            _weighted_spearman(*ranked, (row != np.arange(i, min(i + step, n))[:, None]).astype(np.float64), starts)[0]
            for i in range(0, n, step)
        ]
        variance = (n - 1) * float(np.var(_fisher(np.concatenate(without))[0]))
    half = float(stdtrit(n - 1, TAILS[1])) * math.sqrt(variance)
    return np.asarray(np.tanh([value[0] - half, value[0] + half]))


class _Ranks:
    """Values in ascending order, equal ones together."""

    def __init__(self, values: FloatArray) -> None:
        self.order = np.argsort(values, kind="stable")
        rising = values[self.order]
        self.starts = np.concatenate([[0], np.flatnonzero(np.diff(rising)) + 1])
        group = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(values)))
        self.group = np.empty(len(values), dtype=np.int64)  #: (T,) of equal values, from 0
        self.group[self.order] = group

    def below(self, weights: FloatArray) -> FloatArray:
        """Return the weight of smaller values and half the weight of equal ones, (R, T) from (R, T)."""
        groups = np.add.reduceat(weights[:, self.order], self.starts, axis=1)
        return np.asarray((np.cumsum(groups, axis=1) - groups / 2.0)[:, self.group])


def _weighted_spearman(x: _Ranks, y: _Ranks, weights: FloatArray, starts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return Spearman's rho of weighted positions (R,) and the influence of each sentence on it (R, N).

    A rank is the share of smaller values and half the share of equal ones. So the influence of a position is the
    influence of its ranks and, since it moves all ranks, the mean over the positions above it of the other side's rank.
    NaN if a side is constant.

    Args:
        x: one side.
        y: the other.
        weights: (R, T) of each position.
        starts: (N,) first position of each sentence.
    """
    total = weights.sum(axis=1, keepdims=True)
    w = weights / total
    a, b = x.below(w), y.below(w)

    def mean(values: FloatArray) -> FloatArray:
        return np.asarray((w * values).sum(axis=1, keepdims=True))

    def above(side: _Ranks, values: FloatArray) -> FloatArray:
        return np.asarray(mean(values) - side.below(w * values))

    products, squares_a, squares_b = mean(a * b), mean(a * a), mean(b * b)
    spread_a, spread_b = squares_a - 0.25, squares_b - 0.25  # the mean rank is 1/2
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.where((spread_a > 1e-15) & (spread_b > 1e-15), np.sqrt(spread_a * spread_b), np.nan)
        rho = (products - 0.25) / scale
        of_product = (a * b + above(x, b) + above(y, a) - 3.0 * products) / scale
        of_a = (a * a + 2.0 * above(x, a) - 3.0 * squares_a) / spread_a
        of_b = (b * b + 2.0 * above(y, b) - 3.0 * squares_b) / spread_b
        influence = (of_product - rho / 2.0 * (of_a + of_b)) / total
    return rho[:, 0], np.add.reduceat(influence, starts, axis=1)


def _fisher(rho: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Fisher's z of correlations and its derivative."""
    cut = np.clip(rho, -NEAR_ONE, NEAR_ONE)
    return np.arctanh(cut), 1.0 / (1.0 - cut**2)


def _r2_ends(paired: Paired, seed: int) -> dict[str, FloatArray]:
    """Return the intervals of the three R2, (2,) each: by Fisher's z of the correlation, and by ln MSE / Var."""
    model, oracle = paired.model, paired.oracle
    names = ("r2_pearson", "r2_identity", "r2_released")
    _, row = np.unique(paired.sentence, return_inverse=True)
    if too_few(int(row[-1]) + 1):
        return dict.fromkeys(names, np.full(2, np.nan))
    if np.array_equal(model, oracle):
        return dict.fromkeys(names, np.ones(2))
    if np.ptp(model) == 0.0 or np.ptp(oracle) == 0.0:
        return dict.fromkeys(names, np.full(2, np.nan))
    x, y, apart = model - model.mean(), oracle - oracle.mean(), oracle - model
    columns = (np.ones(len(x)), x, y, x * x, y * y, x * y, apart * apart)
    sums = np.stack([np.bincount(row, column) for column in columns], axis=1).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        intervals = resampled_measures(_r2_scales, sums, seed=seed)
    low, high = np.tanh(intervals[:, 0])
    squares = np.sort([low**2, high**2])
    pearson = np.array([0.0 if low < 0.0 < high else squares[0], squares[1]])
    if (whole := r2_pearson(model, oracle)) >= NEAR_ONE:
        pearson = np.full(2, whole)  # a straight line, on which Fisher's z is infinite
    return dict(zip(names, (pearson, *(1.0 - np.exp(intervals[::-1, 1:])).T), strict=True))


def _r2_scales(sums: NDArray[Any]) -> NDArray[Any]:
    """Return Fisher's z of Pearson's correlation, ln MSE / Var(ln P) and ln MSE / Var(ln Q), (R, 3)."""
    n, x, y, xx, yy, xy, error = sums.T
    spread_x, spread_y = xx - x * x / n, yy - y * y / n
    rho = (xy - x * y / n) / np.sqrt(spread_x * spread_y)
    fisher = 0.5 * (np.log(1.0 + rho) - np.log(1.0 - rho))
    return np.stack([fisher, np.log(error / spread_y), np.log(error / spread_x)], axis=1)


def _identity(model: FloatArray, oracle: FloatArray, reference: FloatArray) -> float:
    error, variance = float(np.mean((oracle - model) ** 2)), float(np.var(reference))
    if error == 0.0:
        return 1.0
    return 1.0 - error / variance if variance > 0.0 else 0.0


def _pearson(x: FloatArray, y: FloatArray) -> float:
    """Return Pearson's correlation; 0 if one side is constant, since nothing then varies together."""
    dx, dy = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((dx @ dx) * (dy @ dy)))
    return float(np.clip((dx @ dy) / scale, -1.0, 1.0)) if scale > 0.0 else 0.0
