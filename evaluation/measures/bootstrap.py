"""Sentence-bootstrap percentile intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
REPLICATES = 1000
LEVEL = 0.95


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
    return np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])


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
    return np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
