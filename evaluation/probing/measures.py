"""Measures of how predicted labels fit the exact posterior, with intervals over groups of items."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from truesource.evaluation.measures.bootstrap import TAILS, Interval, ends, resampled_ratios, resampled_times
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.printable import too_few

_NATS = (0.0, np.inf)
#: between which values a mean lies; all others are shares
RANGES = {**dict.fromkeys(("cross_entropy", "entropy", "kl", "bits"), _NATS), "selectivity": (-1.0, 1.0)}
CELLS = 2**22  #: at most so many counts of resamples stand in memory at once


def probe_measures(
    log_probs: FloatArray, posterior: FloatArray, truth: IntArray, group: IntArray, seed: int
) -> dict[str, Interval]:
    """Measures of a probe on test items, means over items, with 95% intervals from groups drawn with replacement.

    ``accuracy`` and ``mcc`` are of the most probable label against the one that counts as right;
    ``expected_accuracy`` is its posterior probability, the accuracy expected over all derivations. ``cross_entropy``
    is -sum p ln q (nats), ``entropy`` of the posterior the least it can be, ``kl`` the difference.

    Args:
        log_probs: (N, C) of the probe, nats.
        posterior: (N, C) exact.
        truth: (N,) right labels.
        group: (N,) word type or sentence of each item, see `truesource.evaluation.probing.splits.ProbingSplit.group`.
        seed: of the resampling.
    """
    guess = log_probs.argmax(axis=1)
    crossed, entropy = cross_entropies(log_probs, posterior), entropies(posterior)
    columns = {
        "accuracy": (guess == truth).astype(np.float64),
        "expected_accuracy": posterior[np.arange(len(guess)), guess],
        "cross_entropy": crossed,
        "entropy": entropy,
        "kl": crossed - entropy,
    }
    result = mean_intervals(columns, group, seed)
    result["mcc"] = matthews_interval(guess, truth, posterior.shape[1], group, seed)
    return result


def group_accuracy(right: FloatArray, unit: IntArray, group: IntArray, seed: int) -> Interval:
    """Mean over units of the accuracy within each, so that a frequent word counts no more than a rare one.

    Args:
        right: (N,) 1 where the guess is right, else 0.
        unit: (N,) word type of each item; of spans, pair of those of the ends.
        group: (N,) what is resampled; holds units whole.
        seed: of the resampling.
    """
    _, at = np.unique(unit, return_index=True)
    sums = per_group(np.stack([right, np.ones(len(right))], axis=1), unit)
    return mean_intervals({"": sums[:, 0] / sums[:, 1]}, group[at], seed)[""]


def mean_intervals(columns: dict[str, FloatArray], group: IntArray, seed: int) -> dict[str, Interval]:
    """Mean of each column (N,) over items, with 95% intervals over groups."""
    values = np.stack([*columns.values(), np.ones(len(group))], axis=1)
    sums = per_group(values, group)
    total, count = sums[:, :-1], np.repeat(sums[:, -1:], len(columns), axis=1)
    means = map(float, values[:, :-1].mean(axis=0))
    bounds = np.array([RANGES.get(name, (0.0, 1.0)) for name in columns]).T
    pairs = np.clip(resampled_ratios(total, count, seed=seed), *bounds).T.tolist()
    return {name: Interval(mean, *ends(*pair)) for name, mean, pair in zip(columns, means, pairs, strict=True)}


def per_group(values: FloatArray, group: IntArray) -> FloatArray:
    """Sums of each column over the items of each group that occurs, (G, K)."""
    _, row = np.unique(group, return_inverse=True)
    sums = np.zeros((int(row.max()) + 1, values.shape[1]))
    np.add.at(sums, row, values)
    return sums


def cross_entropies(log_probs: FloatArray, posterior: FloatArray) -> FloatArray:
    """-sum p ln q of each item, (N,) nats."""
    crossed: FloatArray = -np.where(posterior > 0.0, posterior * np.where(posterior > 0.0, log_probs, 0.0), 0.0).sum(
        axis=1
    )
    return crossed


def entropies(posterior: FloatArray) -> FloatArray:
    """-sum p ln p of each item, (N,) nats."""
    with np.errstate(divide="ignore"):
        return cross_entropies(np.log(posterior), posterior)


def matthews(guess: IntArray, truth: IntArray, n_labels: int) -> float:
    """Multiclass Matthews correlation, R_K of Gorodkin (2004), in [-1, 1]; 0 where one side is constant."""
    table = np.concatenate([[np.sum(guess == truth)], np.bincount(guess, minlength=n_labels)])
    return float(_matthews(np.concatenate([table, np.bincount(truth, minlength=n_labels)])[None].astype(np.float64))[0])


def matthews_interval(guess: IntArray, truth: IntArray, n_labels: int, group: IntArray, seed: int) -> Interval:
    """`matthews` with its 95% interval over groups.

    Groups have few labels each, so their counts are sparse; those of resamples are dense, `CELLS` at once.
    """
    value = matthews(guess, truth, n_labels)
    names, row = np.unique(group, return_inverse=True)
    if too_few(len(names)):
        return Interval(value)
    columns = np.concatenate([np.zeros(len(guess), dtype=np.int64), 1 + guess, 1 + n_labels + truth])
    ones = np.concatenate([(guess == truth).astype(np.float64), np.ones(2 * len(guess))])
    shape = len(names), 1 + 2 * n_labels
    counts = sparse.csr_matrix((ones, (np.tile(row, 3), columns)), shape=shape)  # sums what falls together
    most = max(1, CELLS // shape[1])
    result = [
        _matthews(times[start : start + most] @ counts)
        for times in resampled_times(len(names), seed=seed)
        for start in range(0, len(times), most)
    ]
    low, high = np.quantile(np.concatenate(result), TAILS).tolist()
    return Interval(value, low, high)


def _matthews(counts: FloatArray) -> FloatArray:
    """Matthews correlation from (R, 1+2C): right items, times each label was predicted, times it was right to."""
    right, (predicted, true) = counts[:, 0], np.split(counts[:, 1:], 2, axis=1)
    total = true.sum(axis=1)
    above = right * total - (predicted * true).sum(axis=1)
    below = (total**2 - (predicted**2).sum(axis=1)) * (total**2 - (true**2).sum(axis=1))
    result: FloatArray = np.divide(above, np.sqrt(below), out=np.zeros(len(counts)), where=below > 0.0)
    return result


def confusion(guess: IntArray, truth: IntArray, n_labels: int) -> IntArray:
    """Counts of each label (row) taken for each (column), (C, C)."""
    return np.bincount(truth * n_labels + guess, minlength=n_labels**2).reshape(n_labels, n_labels)
