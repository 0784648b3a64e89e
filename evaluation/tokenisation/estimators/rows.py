"""Steps of many segmentations at once: what they share is done once."""

from __future__ import annotations

import numpy as np

from truesource.generator.language_model import IncrementalScorer
from truesource.grammar.support.arrays import FloatArray, IntArray


def unique_pairs(one: IntArray, two: IntArray) -> tuple[IntArray, IntArray]:
    """The different pairs, (U, 2) in ascending order, and the number of each of the R given ones among them, (R,)."""
    pairs, of = np.unique(np.stack([one, two], axis=1), axis=0, return_inverse=True)
    return pairs, of.reshape(-1)


def extend(scorer: IncrementalScorer, contexts: IntArray, tokens: IntArray) -> IntArray:
    """(R,) contexts each continued by a piece; equal pairs are run once."""
    if not len(contexts):
        return contexts
    pairs, of = unique_pairs(contexts, tokens)
    return scorer.extend(pairs[:, 0], pairs[:, 1])[of]


def drawn(log_weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """(R,) a column for each row of (R, M) log weights, in proportion to the weights; each row has a finite one."""
    shares = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    cumulative = np.cumsum(shares, axis=1)
    below = cumulative <= rng.random(len(shares))[:, None] * cumulative[:, -1:]
    last = shares.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0.0, axis=1)
    column: IntArray = np.minimum(below.sum(axis=1), last)
    return column
