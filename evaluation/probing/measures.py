"""Measures of predicted labels against the exact posterior, with intervals over groups of items."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from truesource.evaluation.measures.bootstrap import TAILS, Interval, ends, resampled_ratios, resampled_times
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.printable import too_few

_NATS = (0.0, np.inf)
#: ranges of means; all others are shares
RANGES = {**dict.fromkeys(("cross_entropy", "entropy", "kl", "bits"), _NATS), "selectivity": (-1.0, 1.0)}
CELLS = 2**22  #: maximum number of counts of resamples in memory at once


def probe_measures(
    log_probs: FloatArray, posterior: FloatArray, truth: IntArray, group: IntArray, seed: int
) -> dict[str, Interval]:
    """Compute means of measures of a probe over test items, with 95% intervals from resampled groups.

    ``accuracy`` and ``mcc`` compare the most probable label with the right one;
    ``expected_accuracy`` is its posterior probability, the accuracy expected over all derivations. ``cross_entropy``
    is -sum p ln q (nats), ``entropy`` of the posterior its minimum, ``kl`` the difference.

    Args:
        log_probs: log probabilities of the probe, (N, C) nats.
        posterior: exact posterior, (N, C).
        truth: right labels, (N,).
        group: (N,) word type or sentence of each item, see `truesource.evaluation.probing.splits.ProbingSplit.group`.
        seed: seed of the resampling.
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
    """Compute the mean over units of the accuracy within each, so that frequent and rare words count equally.

    Args:
        right: 1 if the guess is right, else 0, (N,).
        unit: (N,) word type of each item; for spans, the pair of end types.
        group: resampled group of each item, (N,); contains whole units.
        seed: seed of the resampling.
    """
    _, at = np.unique(unit, return_index=True)
    sums = per_group(np.stack([right, np.ones(len(right))], axis=1), unit)
    return mean_intervals({"": sums[:, 0] / sums[:, 1]}, group[at], seed)[""]


def mean_intervals(columns: dict[str, FloatArray], group: IntArray, seed: int) -> dict[str, Interval]:
    """Compute the mean of each column (N,) over items, with 95% intervals over groups."""
    values = np.stack([*columns.values(), np.ones(len(group))], axis=1)
    sums = per_group(values, group)
    total, count = sums[:, :-1], np.repeat(sums[:, -1:], len(columns), axis=1)
    means = map(float, values[:, :-1].mean(axis=0))
    bounds = np.array([RANGES.get(name, (0.0, 1.0)) for name in columns]).T
    pairs = np.clip(resampled_ratios(total, count, seed=seed), *bounds).T.tolist()
    return {name: Interval(mean, *ends(*pair)) for name, mean, pair in zip(columns, means, pairs, strict=True)}


def per_group(values: FloatArray, group: IntArray) -> FloatArray:
    """Sum each column over the items of each group that occurs, (G, K)."""
    _, row = np.unique(group, return_inverse=True)
    sums = np.zeros((int(row.max()) + 1, values.shape[1]))
    np.add.at(sums, row, values)
    return sums


def cross_entropies(log_probs: FloatArray, posterior: FloatArray) -> FloatArray:
    """Compute -sum p ln q of each item, (N,) nats."""
    crossed: FloatArray = -np.where(posterior > 0.0, posterior * np.where(posterior > 0.0, log_probs, 0.0), 0.0).sum(
        axis=1
    )
    return crossed


def entropies(posterior: FloatArray) -> FloatArray:
    """Compute -sum p ln p of each item, (N,) nats."""
    with np.errstate(divide="ignore"):
        return cross_entropies(np.log(posterior), posterior)


def matthews(guess: IntArray, truth: IntArray, n_labels: int) -> float:
    """Compute the multiclass Matthews correlation, R_K of Gorodkin (2004), in [-1, 1]; 0 if one side is constant."""
    table = np.concatenate([[np.sum(guess == truth)], np.bincount(guess, minlength=n_labels)])
    return float(_matthews(np.concatenate([table, np.bincount(truth, minlength=n_labels)])[None].astype(np.float64))[0])


def matthews_interval(guess: IntArray, truth: IntArray, n_labels: int, group: IntArray, seed: int) -> Interval:
    """Compute `matthews` with its 95% interval over groups.

    Groups have few labels each, so their counts are sparse; counts of resamples are dense, `CELLS` at once.
    """
    value = matthews(guess, truth, n_labels)
    names, row = np.unique(group, return_inverse=True)
    if too_few(len(names)):
        return Interval(value)
    columns = np.concatenate([np.zeros(len(guess), dtype=np.int64), 1 + guess, 1 + n_labels + truth])
    ones = np.concatenate([(guess == truth).astype(np.float64), np.ones(2 * len(guess))])
    shape = len(names), 1 + 2 * n_labels
    counts = sparse.csr_matrix((ones, (np.tile(row, 3), columns)), shape=shape)  # sums equal places
    most = max(1, CELLS // shape[1])
    result = [
        _matthews(times[start : start + most] @ counts)
        for times in resampled_times(len(names), seed=seed)
        for start in range(0, len(times), most)
    ]
    low, high = np.quantile(np.concatenate(result), TAILS).tolist()
    return Interval(value, low, high)


def _matthews(counts: FloatArray) -> FloatArray:
    """Compute Matthews correlations from (R, 1+2C): counts of right items, of predicted and of right labels."""
    right, (predicted, true) = counts[:, 0], np.split(counts[:, 1:], 2, axis=1)
    total = true.sum(axis=1)
    above = right * total - (predicted * true).sum(axis=1)
    below = (total**2 - (predicted**2).sum(axis=1)) * (total**2 - (true**2).sum(axis=1))
    result: FloatArray = np.divide(above, np.sqrt(below), out=np.zeros(len(counts)), where=below > 0.0)
    return result


def confusion(guess: IntArray, truth: IntArray, n_labels: int) -> IntArray:
    """Count items by right label (row) and predicted label (column), (C, C)."""
    return np.bincount(truth * n_labels + guess, minlength=n_labels**2).reshape(n_labels, n_labels)
