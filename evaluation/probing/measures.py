"""Splits of items, and how well predicted labels fit the exact posterior, with intervals over groups of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from truesource.evaluation.measures.bootstrap import TAILS, Interval, ends, resampled_ratios, resampled_times
from truesource.evaluation.probing import By
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import too_few

_NATS = (0.0, np.inf)
#: between which values a mean lies; all others are shares
RANGES = {**dict.fromkeys(("cross_entropy", "entropy", "kl", "bits"), _NATS), "selectivity": (-1.0, 1.0)}
CELLS = 2**22  #: at most so many counts of resamples stand in memory at once
SHARES = (0.8, 0.1, 0.1)  #: of the items: train, dev, test
LARGEST = 0.01  #: of all items: more frequent word types are not measured on
ENOUGH = 2.0  #: times as many words of items as dev and test take must be left to choose from


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
        group: (N,) word type or sentence of each item, see `truesource.evaluation.probing.measures.ProbingSplit.group`.
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


@dataclass(frozen=True, eq=False)
class ProbingSplit:
    """Three parts, none empty."""

    by: By
    train: IntArray
    dev: IntArray
    test: IntArray
    group: IntArray  #: (T,) group of each item, in one part only; what is resampled, and what a code transmits at once


def split(
    by: By, keys: Sequence[str], truth: IntArray, sentence: IntArray, seed: int, *, ends: Sequence[str] | None = None
) -> ProbingSplit:
    """Divide items in 80/10/10.

    ``type``: word types are divided. A test item has a test type (of a span: at one end at least), a dev item a dev
    type and no test type, a train item train types only. So no word type is in two parts; of spans, no train span has
    a dev or test type at an end. Learnt from are the most frequent type of each label (of spans: pair of types), so
    that no label is asked for that was never shown, and types with more than `LARGEST` of all items (or as many as
    leave enough for the rest), so that no few words decide the result. The other types come in random order: the first
    ones go to test until it has its share of items, the next to dev. A group is a word type; of spans, the one that
    puts the span in its part, the first of two. ``position``: the items in order, cut at the ends of sentences, which
    are the groups.

    Args:
        by: what the parts must not share.
        keys: (T,) word type of each item; of a span, of its first word.
        truth: (T,) its right label.
        sentence: (T,) its sentence, ascending.
        seed: of the order of types.
        ends: (T,) of spans, type of the last word.

    Raises:
        InputError: there are too few word types, or sentences, to divide.
    """
    if by == "position":
        group = np.unique(sentence, return_inverse=True)[1].astype(np.int64)
        if group[-1] + 1 < len(SHARES):
            raise NothingToMeasureError(
                f"{group[-1] + 1} sentences are too few to divide into train, dev and test; give more",
                "too-few-sentences",
            )
        of_item = _cut(np.bincount(group))[group]
    else:
        both = numbered([*keys, *(keys if ends is None else ends)])
        first, last = np.split(both, 2)
        part = _dealt(first, last, truth, np.random.default_rng([seed, 1]))
        of_item = np.maximum(part[first], part[last])
        group = np.where(part[first] == of_item, first, last)
        if len(np.unique(of_item)) < len(SHARES):
            raise NothingToMeasureError(
                f"{len(part)} word types are too few to divide so that every label is in train, and dev and test are"
                " not empty; give more sentences, or split by position",
                "too-few-words",
            )
    train, dev, test = (np.flatnonzero(of_item == i) for i in range(len(SHARES)))
    return ProbingSplit(by, train, dev, test, group)


def numbered(keys: Sequence[str]) -> IntArray:
    """Number of each key, (T,), in the order in which they come first."""
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([numbers[key] for key in keys], dtype=np.int64)


def _dealt(first: IntArray, last: IntArray, truth: IntArray, rng: np.random.Generator) -> IntArray:
    """Part of each type: 0 train, 1 dev, 2 test."""
    other = last != first
    item = np.concatenate([np.arange(len(first)), np.flatnonzero(other)])
    types = np.concatenate([first, last[other]])
    sizes = np.bincount(types)  # items that have it at an end
    items = np.split(item[np.argsort(types, kind="stable")], np.cumsum(sizes)[:-1])
    free = np.ones(len(sizes), dtype=bool)
    free[_showing(first, last, truth, sizes)] = False
    rising = np.sort(sizes[free])
    enough = np.searchsorted(np.cumsum(rising), ENOUGH * sum(SHARES[1:]) * len(types))
    if enough < len(rising):
        free &= sizes <= max(LARGEST * len(first), rising[enough])
    order = [i for i in rng.permutation(len(sizes)).tolist() if free[i]]
    part = np.zeros(len(sizes), dtype=np.int64)
    taken = np.zeros(len(first), dtype=bool)
    for which in (2, 1):
        wanted, held = SHARES[which] * len(first), 0
        for i in order:
            new = 0 if part[i] else int((~taken[items[i]]).sum())
            if new and (held == 0 or abs(held + new - wanted) < abs(held - wanted)):
                part[i] = which
                taken[items[i]] = True
                held += new
            if held >= wanted:
                break
    return part


def _showing(first: IntArray, last: IntArray, truth: IntArray, sizes: IntArray) -> IntArray:
    """Types of the most frequent pair of ends of each label; of several, the pair of the more frequent types."""
    pairs, label = first * len(sizes) + last, truth.astype(np.int64)
    result, count = np.unique(np.stack([label, pairs]), axis=1, return_counts=True)
    ends = np.stack(np.divmod(result[1], len(sizes)))
    order = np.lexsort((-sizes[ends].min(axis=0), -count, result[0]))
    heads = np.unique(result[0][order], return_index=True)[1]
    return ends[:, order[heads]].ravel()


def _cut(sizes: IntArray) -> IntArray:
    """Part of each group in order; every part has one at least."""
    middle = (np.cumsum(sizes) - sizes / 2) / sizes.sum()
    part: IntArray = np.searchsorted(np.cumsum(SHARES)[:-1], middle, side="right").astype(np.int64)
    part[0] = 0
    part[-1] = len(SHARES) - 1
    if not (part == 1).any():
        part[-2] = 1
    return part
