"""Sentence-bootstrap percentile intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
REPLICATES = 1000
LEVEL = 0.95
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
DRAWN = 2**20  #: most sentences drawn at once


class Interval(NamedTuple):
    """A value with its 95% interval."""

    value: float
    low: float
    high: float


def resampled_ratio(total: FloatArray, count: FloatArray, *, seed: int, replicates: int = REPLICATES) -> FloatArray:
    """Percentile interval of ``sum(total) / sum(count)`` when sentences are drawn with replacement, (2,).

    Args:
        total: (N,) per sentence.
        count: (N,) scored positions per sentence.
        seed: of the resampling.
        replicates: number of resamples.
    """
    rng = np.random.default_rng(seed)
    ratios = np.empty(replicates)
    for i in range(replicates):
        drawn = rng.integers(0, len(total), len(total))
        ratios[i] = total[drawn].sum() / count[drawn].sum()
    return np.quantile(ratios, TAILS)


def resampled_sums(values: FloatArray, *, seed: int, replicates: int = REPLICATES) -> FloatArray:
    """Sums of each column over sentences drawn with replacement, the draws of `resampled_ratio`, (replicates, K).

    Args:
        values: (N, K) per sentence.
        seed: of the resampling.
        replicates: number of resamples.
    """
    return np.concatenate([times @ values for times in resampled_times(len(values), seed=seed, replicates=replicates)])


def resampled_times(n: int, *, seed: int, replicates: int = REPLICATES) -> Iterator[FloatArray]:
    """How often each of ``n`` sentences is drawn in each resample, a few resamples at once, (some, n)."""
    rng = np.random.default_rng(seed)
    step = max(1, min(replicates, DRAWN // n))
    for start in range(0, replicates, step):
        size = min(step, replicates - start)
        drawn = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


def resampled_ratios(total: FloatArray, count: FloatArray, *, seed: int, replicates: int = REPLICATES) -> FloatArray:
    """Percentile intervals of ``sum(total) / sum(count)``, column by column, from the same resamples, (2, K).

    Each column's interval is that of `resampled_ratio`; resamples without any count of it are left out. NaN where
    there is no count at all.

    Args:
        total: (N, K) per sentence and measure.
        count: (N, K) what each is divided by.
        seed: of the resampling.
        replicates: number of resamples.
    """
    sums = resampled_sums(np.concatenate([total, count], axis=1), seed=seed, replicates=replicates)
    above, below = np.split(sums, 2, axis=1)
    ratios = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0.0)
    there = (below > 0.0).any(axis=0)
    ends = np.full((2, total.shape[1]), np.nan)
    ends[:, there] = np.nanquantile(ratios[:, there], TAILS, axis=0)
    return ends


def resampled_statistic(
    statistic: Callable[[NDArray[np.int64]], float], sentence: NDArray[np.int32], *, seed: int, replicates: int
) -> FloatArray:
    """Percentile interval of any statistic of positions when sentences are drawn with replacement, (2,).

    Args:
        statistic: takes the numbers of the positions drawn (with repeats).
        sentence: (T,) sentence of each position, ascending.
        seed: of the resampling.
        replicates: number of resamples.
    """
    rng = np.random.default_rng(seed)
    _, first, length = np.unique(sentence, return_index=True, return_counts=True)
    values = np.empty(replicates)
    for i in range(replicates):
        drawn = rng.integers(0, len(first), len(first))
        sizes = length[drawn]
        offset = np.repeat(first[drawn] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        values[i] = statistic(np.arange(sizes.sum()) + offset)
    return np.quantile(values, TAILS)
