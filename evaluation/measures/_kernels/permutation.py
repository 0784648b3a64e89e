"""Numba kernels: word counts of sentences that are dealt out anew to two samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from truesource.generator._kernels import uniform
from truesource.grammar._kernels.kernel import kernel

Array = Any  # numpy arrays; element types are in the docstrings


@kernel
def deal(tokens: Array, offsets: Array, size: int, state: Array, counts: Array) -> int:
    """Choose ``size`` of the sentences, every set of that size with the same probability, and count their words.

    It is one pass from left to right (selection sampling; Knuth, The Art of Computer Programming 2, algorithm S), so
    memory is read in order, and only the tokens of chosen sentences.

    Args:
        tokens: (T,) int32 words of all sentences.
        offsets: (N+1,) int64, where each sentence starts.
        size: sentences to choose, at most N.
        state: (4,) uint64 of the generator.
        counts: (V,) int64, filled with the counts of the chosen sentences.

    Returns:
        Number of their tokens.
    """
    counts[:] = 0
    total = 0
    missing, left = size, len(offsets) - 1
    for i in range(len(offsets) - 1):
        if uniform(state) * left < missing:
            missing -= 1
            a, b = offsets[i], offsets[i + 1]
            total += b - a
            for t in range(a, b):
                counts[tokens[t]] += 1
            if missing == 0:
                break
        left -= 1
    return total


@kernel
def ranked(counts: Array) -> Array:
    """Return counts in descending order, by a counting sort of the small ones and a sort of the others."""
    few = 1 << 12
    bins = np.zeros(few, dtype=np.int64)
    many = 0
    for c in counts:
        if c < few:
            bins[c] += 1
        else:
            many += 1
    high = np.empty(many, dtype=np.int64)
    at = 0
    for c in counts:
        if c >= few:
            high[at] = c
            at += 1
    high.sort()
    ranked = np.empty(len(counts), dtype=np.int64)
    for i in range(many):
        ranked[i] = high[many - 1 - i]
    at = many
    for value in range(few - 1, -1, -1):
        for _ in range(bins[value]):
            ranked[at] = value
            at += 1
    return ranked


@kernel
def compare(counts: Array, others: Array, ranks: int, distances: Array) -> None:
    """Compute total variation, largest difference, and rank-frequency KS of two samples' word counts.

    Args:
        counts: (V,) int64.
        others: (V,) int64, of the other sample.
        ranks: of the rank-frequency distributions, each sample ranked by its own counts and normalised over these.
        distances: (3,) float64, filled.
    """
    n, m = counts.sum(), others.sum()
    tv = largest = 0.0
    for w in range(len(counts)):
        gap = abs(counts[w] / n - others[w] / m)
        tv += gap
        largest = max(largest, gap)
    a, b = ranked(counts)[:ranks], ranked(others)[:ranks]
    total_a, total_b = a.sum(), b.sum()
    farthest, sum_a, sum_b = 0.0, 0, 0
    for r in range(len(a)):
        sum_a += a[r]
        sum_b += b[r]
        farthest = max(farthest, abs(sum_a / total_a - sum_b / total_b))
    distances[0], distances[1], distances[2] = 0.5 * tv, largest, farthest


@kernel
def permutations(
    tokens: Array, offsets: Array, pooled: Array, size: int, states: Array, ranks: int, distances: Array
) -> None:
    """Apply `compare` to sentences dealt out anew, once for each generator.

    Args:
        tokens: (T,) int32 words of the sentences of both samples.
        offsets: (N+1,) int64.
        pooled: (V,) int64 counts of both.
        size: sentences of the first sample.
        states: (R, 4) uint64, a generator for each permutation.
        ranks: see `compare`.
        distances: (R, 3) float64, filled.
    """
    sentences = len(offsets) - 1
    chosen = min(size, sentences - size)
    counts = np.empty(len(pooled), dtype=np.int64)
    for r in range(len(states)):
        deal(tokens, offsets, chosen, states[r], counts)
        if chosen == size:
            compare(counts, pooled - counts, ranks, distances[r])
        else:
            compare(pooled - counts, counts, ranks, distances[r])
