"""Means and medians of groups that tokens belong to in part, with sentence-bootstrap intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evaluation.measures.bootstrap import TAILS, resampled_sums, resampled_times

FloatArray = NDArray[np.float64]


class Means(NamedTuple):
    """Means of C columns in G groups."""

    value: FloatArray  #: (C, G)
    low: FloatArray  #: (C, G) lower end of the 95% interval
    high: FloatArray  #: (C, G)
    resampled: FloatArray  #: (R, C, G) of each resample; NaN where the group does not occur in it


def group_means(values: FloatArray, weight: FloatArray, sentence: NDArray[np.int32], *, seed: int) -> Means:
    """Weighted means in each group; all columns are resampled alike, so curves keep their shape.

    Args:
        values: (T, C), finite.
        weight: (T, G) share of each token in each group; no group is empty.
        sentence: (T,) sentence of each token, ascending.
        seed: of the bootstrap.
    """
    starts = np.flatnonzero(np.diff(sentence, prepend=-1))
    columns, groups = values.shape[1], weight.shape[1]
    total = np.stack([np.add.reduceat(weight * column[:, None], starts) for column in values.T], axis=1)
    count = np.add.reduceat(weight, starts)
    sums = resampled_sums(np.concatenate([total.reshape(len(starts), -1), count], axis=1), seed=seed)
    above, below = sums[:, : columns * groups].reshape(-1, columns, groups), sums[:, None, columns * groups :]
    drawn = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0.0)
    low, high = np.nanquantile(drawn, TAILS, axis=0)
    return Means(total.sum(axis=0) / count.sum(axis=0), low, high, drawn)


def group_medians(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted median of each group, (G,): of equal weights the median, the middle of the two values if two are.

    Args:
        values: (T,) finite.
        weight: (T, G); no group is empty.
    """
    order = np.argsort(values, kind="stable")
    return np.array([_medians(values[order], column[order][None])[0] for column in weight.T])


def median_intervals(values: FloatArray, weight: FloatArray, sentence: NDArray[np.int32], *, seed: int) -> FloatArray:
    """Their 95% intervals, (2, G); arguments as for `group_means`, of one column."""
    row = np.cumsum(np.diff(sentence, prepend=-1) != 0) - 1
    order = np.argsort(values, kind="stable")
    sorted_values, sorted_row = values[order], row[order]
    found: list[list[FloatArray]] = [[] for _ in weight.T]
    for times in resampled_times(int(row[-1]) + 1, seed=seed):
        for column, kept in zip(weight.T, found, strict=True):
            own = np.flatnonzero(column[order] > 0.0)
            weights = times[:, sorted_row[own]] * column[order][own]
            kept.append(_medians(sorted_values[own], weights))
    return np.stack([np.nanquantile(np.concatenate(kept), TAILS) for kept in found], axis=1)


def _medians(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Median of rising values (T,) under each row of weights (R, T); NaN where a row has no weight."""
    reached = np.cumsum(weights, axis=1)
    half = reached[:, -1:] / 2.0
    slack = 1e-12 * half
    low = np.argmax(reached >= half - slack, axis=1)
    high = np.argmax(reached > half + slack, axis=1)
    return np.where(half[:, 0] > 0.0, (values[low] + values[high]) / 2.0, np.nan)
