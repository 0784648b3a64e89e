"""Tasks without anything to find, and guesses that look at no vector: what a probe's accuracy is set beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from truesource.grammar.support.arrays import FloatArray, IntArray


def control_labels(keys: Sequence[str], truth: IntArray, seed: int) -> IntArray:
    """A control task (Hewitt and Liang 2019): each word type has one label, drawn from those of the items, (T,).

    Only a probe that knows the type by heart can tell it, so accuracy on it says how much a probe can memorise. Types
    must recur for that: of spans they are those of the first word, for pairs of end words hardly do.
    """
    rng = np.random.default_rng([seed, 2])
    drawn = {key: int(truth[rng.integers(len(truth))]) for key in dict.fromkeys(keys)}
    return np.array([drawn[key] for key in keys], dtype=np.int64)


def random_labels(truth: IntArray, seed: int) -> IntArray:
    """For each item a label drawn anew from those of the items, (T,): nothing can tell it."""
    rng = np.random.default_rng([seed, 3])
    return truth[rng.integers(len(truth), size=len(truth))]


def one_hot(labels: IntArray, n_labels: int) -> FloatArray:
    """Hard labels as distributions, (T, C)."""
    table = np.zeros((len(labels), n_labels))
    table[np.arange(len(labels)), labels] = 1.0
    return table


def majority_guess(truth: IntArray) -> int:
    """The most frequent label; of several, the first."""
    return int(np.bincount(truth).argmax())


def identity_guesses(keys: Sequence[str], truth: IntArray, train: IntArray, test: IntArray) -> IntArray:
    """For each test item the most frequent label of its word type in the train part, else of the whole part, (N,)."""
    common = majority_guess(truth[train])
    counts: dict[str, Counter[int]] = {}
    for i in train.tolist():
        counts.setdefault(keys[i], Counter())[int(truth[i])] += 1
    best = {key: min(seen, key=lambda label: (-seen[label], label)) for key, seen in counts.items()}
    return np.array([best.get(keys[i], common) for i in test.tolist()], dtype=np.int64)
