"""How well predicted labels fit the exact posterior, with intervals over whole groups of items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evaluation.measures.bootstrap import TAILS, Interval, resampled_ratios, resampled_sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def probe_measures(log_probs: Floats, posterior: Floats, truth: Ints, group: Ints, seed: int) -> dict[str, Interval]:
    """Measures of a probe on test items, means over items, with 95% intervals from groups drawn with replacement.

    ``accuracy`` and ``mcc`` are of the most probable label against the one that counts as right;
    ``expected_accuracy`` is its posterior probability, the accuracy expected over all derivations. ``cross_entropy``
    is -sum p ln q (nats), ``entropy`` of the posterior the least it can be, ``kl`` the difference. ``group_accuracy``
    is the mean over groups of the accuracy within each, in which a frequent word counts no more than a rare one.

    Args:
        log_probs: (N, C) of the probe, nats.
        posterior: (N, C) exact.
        truth: (N,) right labels.
        group: (N,) word type or sentence of each item.
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
    found = mean_intervals(columns, group, seed)
    right = per_group(np.stack([columns["accuracy"], np.ones(len(group))], axis=1), group)
    shares = right[:, 0] / right[:, 1]
    found["group_accuracy"] = mean_intervals({"": shares}, np.arange(len(shares)), seed)[""]
    found["mcc"] = matthews_interval(guess, truth, posterior.shape[1], group, seed)
    return found


def mean_intervals(columns: dict[str, Floats], group: Ints, seed: int) -> dict[str, Interval]:
    """Mean of each column (N,) over items, with 95% intervals over groups."""
    values = np.stack([*columns.values(), np.ones(len(group))], axis=1)
    sums = per_group(values, group)
    total, count = sums[:, :-1], np.repeat(sums[:, -1:], len(columns), axis=1)
    low, high = resampled_ratios(total, count, seed=seed)
    means = values[:, :-1].mean(axis=0)
    return {name: Interval(*map(float, (means[i], low[i], high[i]))) for i, name in enumerate(columns)}


def per_group(values: Floats, group: Ints) -> Floats:
    """Sums of each column over the items of each group that occurs, (G, K)."""
    _, row = np.unique(group, return_inverse=True)
    sums = np.zeros((int(row.max()) + 1, values.shape[1]))
    np.add.at(sums, row, values)
    return sums


def cross_entropies(log_probs: Floats, posterior: Floats) -> Floats:
    """-sum p ln q of each item, (N,) nats."""
    crossed: Floats = -np.where(posterior > 0.0, posterior * np.where(posterior > 0.0, log_probs, 0.0), 0.0).sum(axis=1)
    return crossed


def entropies(posterior: Floats) -> Floats:
    """-sum p ln p of each item, (N,) nats."""
    with np.errstate(divide="ignore"):
        return cross_entropies(np.log(posterior), posterior)


def matthews(guess: Ints, truth: Ints, n_labels: int) -> float:
    """Multiclass Matthews correlation, R_K of Gorodkin (2004), in [-1, 1]; 0 where one side is constant."""
    table = np.concatenate([[np.sum(guess == truth)], np.bincount(guess, minlength=n_labels)])
    return float(_matthews(np.concatenate([table, np.bincount(truth, minlength=n_labels)])[None].astype(np.float64))[0])


def matthews_interval(guess: Ints, truth: Ints, n_labels: int, group: Ints, seed: int) -> Interval:
    """`matthews` with its 95% interval over groups."""
    items = np.zeros((len(guess), 1 + 2 * n_labels))
    items[:, 0] = guess == truth
    items[np.arange(len(guess)), 1 + guess] = 1.0
    items[np.arange(len(guess)), 1 + n_labels + truth] = 1.0
    low, high = np.quantile(_matthews(resampled_sums(per_group(items, group), seed=seed)), TAILS)
    return Interval(matthews(guess, truth, n_labels), float(low), float(high))


def _matthews(counts: Floats) -> Floats:
    """From (R, 1+2C): how many are right, how often each label was predicted, how often it was right to."""
    right, (predicted, true) = counts[:, 0], np.split(counts[:, 1:], 2, axis=1)
    total = true.sum(axis=1)
    above = right * total - (predicted * true).sum(axis=1)
    below = (total**2 - (predicted**2).sum(axis=1)) * (total**2 - (true**2).sum(axis=1))
    found: Floats = np.divide(above, np.sqrt(below), out=np.zeros(len(counts)), where=below > 0.0)
    return found


def confusion(guess: Ints, truth: Ints, n_labels: int) -> Ints:
    """How often each label (row) was taken for each (column), (C, C)."""
    return np.bincount(truth * n_labels + guess, minlength=n_labels**2).reshape(n_labels, n_labels)
