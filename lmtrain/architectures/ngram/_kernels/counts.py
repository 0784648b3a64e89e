"""Numba kernels: counts of all n-grams of a token stream, one length after the other, and probabilities from them.

The occurrences of the n-grams of one length are their start places, sorted by n-gram. To make them one token
longer, the places of each n-gram are sorted by the token that follows; runs of equal tokens are the longer n-grams.
One length costs two passes over the places and the sorting of many short rows, whatever the size of the vocabulary.

A trie is numbered from its root, shorter n-grams first: the continuations of n-gram g are ``start[g]`` to
``start[g + 1]``, its last token ``word[g]``, and ``suffix[g]`` the n-gram without its first token.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truesource.grammar._kernels.kernel import kernel

Array = Any  # numpy arrays; element types are in the docstrings


@kernel
def by_token(tokens: Array, n_tokens: int) -> tuple[Array, Array]:
    """Places (T,) int32 of a stream, sorted by its ``tokens`` (T,) int32, and how often each of them occurs (K,)."""
    counts = np.zeros(n_tokens, dtype=np.int32)
    for i in range(len(tokens)):
        counts[tokens[i]] += 1
    at = np.zeros(n_tokens, dtype=np.int64)
    for token in range(1, n_tokens):
        at[token] = at[token - 1] + counts[token - 1]
    places = np.empty(len(tokens), dtype=np.int32)
    for i in range(len(tokens)):
        places[at[tokens[i]]] = i
        at[tokens[i]] += 1
    return places, counts


@kernel
def _sort(tokens: Array, places: Array, n: int, other_tokens: Array, other_places: Array, most: int) -> None:
    """Sort the first n pairs by token, which is at most ``most``; pairs of one token stay in order.

    Few pairs, as most rows have, are sorted by insertion, many digit by digit; ``other_...`` is room for them.
    """
    if n <= 32:
        for i in range(1, n):
            token, place = tokens[i], places[i]
            j = i
            while j > 0 and tokens[j - 1] > token:
                tokens[j], places[j] = tokens[j - 1], places[j - 1]
                j -= 1
            tokens[j], places[j] = token, place
        return
    at = np.empty(257, dtype=np.int64)
    shift = 0
    while most >> shift > 0:
        at[:] = 0
        for i in range(n):
            at[1 + ((tokens[i] >> shift) & 255)] += 1
        for digit in range(256):
            at[digit + 1] += at[digit]
        for i in range(n):
            digit = (tokens[i] >> shift) & 255
            other_tokens[at[digit]], other_places[at[digit]] = tokens[i], places[i]
            at[digit] += 1
        for i in range(n):
            tokens[i], places[i] = other_tokens[i], other_places[i]
        shift += 8


@kernel
def refine(
    tokens: Array, places: Array, counts: Array, last: Array, length: int, end: int, n_tokens: int
) -> tuple[int, int]:
    """Sort the places of n-grams of one length by the token that follows.

    Args:
        tokens: (T,) int32, ``<bos> w1 .. wn <eos>`` sentence by sentence.
        places: (P,) int32, starts of all n-grams sorted by n-gram; overwritten.
        counts: (R,) int32, how many of them each n-gram has.
        last: (R,) int32, last token of each n-gram; one that is ``end`` has no continuation and is dropped.
        length: of the n-grams.
        end: the token ``<eos>``.
        n_tokens: K.

    Returns:
        Number of places left at the front of ``places``, and number of different longer n-grams among them.
    """
    widest = 0
    for r in range(len(counts)):
        widest = max(widest, counts[r])
    follows = np.empty(widest, dtype=np.int32)
    other_tokens, other_places = np.empty_like(follows), np.empty_like(follows)
    begin = n_left = n_longer = 0
    for r in range(len(counts)):
        n = counts[r]
        if last[r] == end:
            begin += n
            continue
        if n == 1:
            places[n_left] = places[begin]
            n_longer += 1
        elif n > 1:
            row = places[n_left:]
            for i in range(n):
                row[i] = places[begin + i]
                follows[i] = tokens[row[i] + length]
            _sort(follows, row, n, other_tokens, other_places, n_tokens - 1)
            for i in range(n):
                if i == 0 or follows[i] != follows[i - 1]:
                    n_longer += 1
        begin += n
        n_left += n
    return n_left, n_longer


@kernel
def extend(
    tokens: Array,
    places: Array,
    counts: Array,
    last: Array,
    length: int,
    end: int,
    first: int,
    node: Array,
    child_start: Array,
    child_word: Array,
    child_count: Array,
    child_suffix: Array,
) -> None:
    """Number the longer n-grams that `refine` sorted the places by, from ``first`` on.

    Args:
        tokens: as for `refine`.
        places: result of `refine`.
        counts: as for `refine`.
        last: as for `refine`.
        length: as for `refine`.
        end: as for `refine`.
        first: number of the first longer n-gram.
        node: (T,) int32, number of the n-gram of the present length at each place; afterwards of the longer one.
        child_start: (R,) int32, to be filled: number of the first continuation of each n-gram.
        child_word: (F,) int32, to be filled: last token of each longer n-gram.
        child_count: (F,) int32, to be filled: how often it occurs.
        child_suffix: (F,) int32, to be filled: the number of the n-gram that is left without its first token.
    """
    child = -1
    at = 0
    for r in range(len(counts)):
        child_start[r] = first + child + 1
        if last[r] == end:
            continue
        before = -1
        for i in range(at, at + counts[r]):
            token = tokens[places[i] + length]
            if token != before:
                before = token
                child += 1
                child_word[child] = token
                child_count[child] = 0
                child_suffix[child] = node[places[i] + 1]
            child_count[child] += 1
        at += counts[r]
    at = 0
    for c in range(len(child_count)):
        for i in range(at, at + child_count[c]):
            node[places[i]] = first + c
        at += child_count[c]


@kernel
def continuation_counts(count: Array, suffix: Array, first_longest: int) -> Array:
    """Return the number of different tokens before each n-gram, (G,) int32.

    An n-gram of the greatest length (``first_longest`` on), or at the beginning of a sentence, which no token precedes,
    keeps its own ``count`` (G,).
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
    """Return the numbers of entries of ``count`` that are 1, 2, 3 and 4, (4,) int64."""
    result = np.zeros(4, dtype=np.int64)
    for c in count:
        if 1 <= c <= 4:
            result[c - 1] += 1
    return result


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
    """Fill in interpolated log probabilities and backoff weights.

    p(w | h) = (c(hw) - D(c(hw))) / c(h.) + b(h) p(w | h'), where c(h.) is the sum over all w, b(h) the mass that the
    discounts took, and h' is h without its first token; below the empty h all ``emitted`` tokens are equally likely.

    Args:
        start: (C + 1,) int32.
        suffix: (G,) int32.
        count: (G,) int32, c.
        level: (N + 1,) int32, number of the first n-gram of each length 0 to N; C is the last of them.
        discount: (N, 3) float64, D of n-grams of each length with a count of 1, 2, and 3 or more.
        emitted: (K,) bool, the tokens that can follow something.
        nothing: log b of a context that nothing follows: 0 to back off, -inf to expect nothing.
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
    result = np.zeros((n_levels + 1, 2), dtype=np.int64)
    result[1, 0], result[1, 1] = node, node + 1
    for k in range(1, n_levels):
        result[k + 1, 0], result[k + 1, 1] = start[result[k, 0]], start[result[k, 1]]
    return result


@kernel
def weighted_sum(count: Array, log_prob: Array, begin: int, end: int) -> tuple[float, int]:
    """Return the sum of ``count * log_prob`` over n-grams ``begin`` to ``end`` that occur, and of their counts."""
    total, tokens = 0.0, 0
    for g in range(begin, end):
        if count[g] > 0:
            total += count[g] * log_prob[g]
            tokens += count[g]
    return total, tokens
