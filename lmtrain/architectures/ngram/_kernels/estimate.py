"""Numba kernels: probabilities of the n-grams of a trie from their counts.

A trie is numbered from its root, shorter n-grams first: the continuations of n-gram g are ``start[g]`` to
``start[g + 1]``, its last token ``word[g]``, and ``suffix[g]`` the n-gram without its first token.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truesource.grammar._kernels.kernel import kernel

Array = Any  # numpy arrays; element types are in the docstrings


@kernel
def continuation_counts(count: Array, suffix: Array, first_longest: int) -> Array:
    """How many different tokens stand before each n-gram, (G,) int32.

    An n-gram of the greatest length (``first_longest`` on), or at the beginning of a sentence, where nothing stands
    before it, keeps its own ``count`` (G,).
    """
    adjusted = np.zeros(len(count), dtype=np.int32)
    for g in range(len(count)):
        if suffix[g] > 0:
            adjusted[suffix[g]] += 1
    for g in range(len(count)):
        if g >= first_longest or adjusted[g] == 0:
            adjusted[g] = count[g]
    return adjusted


@kernel
def counts_of_counts(count: Array) -> Array:
    """How many of ``count`` are 1, 2, 3 and 4, (4,) int64."""
    found = np.zeros(4, dtype=np.int64)
    for c in count:
        if 1 <= c <= 4:
            found[c - 1] += 1
    return found


@kernel
def estimate(
    start: Array,
    suffix: Array,
    count: Array,
    level: Array,
    discount: Array,
    emitted: Array,
    nothing: float,
    log_prob: Array,
    backoff: Array,
) -> None:
    """Interpolated log probabilities.

    p(w | h) = (c(hw) - D(c(hw))) / c(h.) + b(h) p(w | h'), where c(h.) is the sum over all w, b(h) the mass that the
    discounts took, and h' is h without its first token; below the empty h all ``emitted`` tokens are equally likely.

    Args:
        start: (C + 1,) int32.
        suffix: (G,) int32.
        count: (G,) int32, c.
        level: (N + 1,) int32, number of the first n-gram of each length 0 to N; C is the last of them.
        discount: (N, 3) float64, D of n-grams of each length with a count of 1, 2, and 3 or more.
        emitted: (K,) bool, the tokens that can follow something.
        nothing: log b of a context that nothing follows: 0 to go down from it, -inf to expect nothing.
        log_prob: (G,) float64, to be filled: log p of the last token of an n-gram given those before it.
        backoff: (C,) float64, to be filled: log b of each n-gram as a context.
    """
    base = 1.0 / np.sum(emitted)
    n_levels = len(level) - 1
    for k in range(n_levels):
        for g in range(level[k], level[k + 1]):
            total, taken = 0, 0.0
            for c in range(start[g], start[g + 1]):
                if count[c] > 0:
                    total += count[c]
                    taken += discount[k, min(count[c], 3) - 1]
            if total == 0:
                backoff[g] = nothing
                continue
            weight = taken / total
            backoff[g] = np.log(weight)
            for c in range(start[g], start[g + 1]):
                p = 0.0
                if count[c] > 0:
                    p = (count[c] - discount[k, min(count[c], 3) - 1]) / total
                if k > 0:
                    p += weight * log_prob[suffix[c]]
                elif emitted[c - start[0]]:
                    p += weight * base
                log_prob[c] = p  # the logarithm is taken when no longer n-gram needs it
    log_prob[0] = 0.0
    for g in range(1, len(log_prob)):
        log_prob[g] = np.log(log_prob[g])


@kernel
def start_range(start: Array, level: Array, node: int) -> Array:
    """Numbers (N + 1, 2) of the first n-gram, and of the one after the last, of each length that begin with ``node``.

    ``node`` is an n-gram of length 1; the rows of lengths 0 and 1 are empty and itself.
    """
    n_levels = len(level) - 1
    found = np.zeros((n_levels + 1, 2), dtype=np.int64)
    found[1, 0], found[1, 1] = node, node + 1
    for k in range(1, n_levels):
        found[k + 1, 0], found[k + 1, 1] = start[found[k, 0]], start[found[k, 1]]
    return found


@kernel
def weighted_sum(count: Array, log_prob: Array, begin: int, end: int) -> tuple[float, int]:
    """Sum of ``count * log_prob`` over n-grams ``begin`` to ``end`` that occur, and of their counts."""
    total, tokens = 0.0, 0
    for g in range(begin, end):
        if count[g] > 0:
            total += count[g] * log_prob[g]
            tokens += count[g]
    return total, tokens
