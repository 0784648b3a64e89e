"""Numba kernels: random derivations of a PCFG.

Rules of all kinds are numbered in one row: binary, then unary, then lexical. ``left`` holds the left
or only child (a word number for lexical rules), ``right`` the right child of binary rules.
A derivation is the row of its rule numbers in preorder.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truesource.generator._kernels.random import uniform
from truesource.generator._kernels.rules import Choices, NumberedRules
from truesource.grammar._kernels.growing import room
from truesource.grammar._kernels.kernel import kernel

Array = Any  # numpy arrays; element types are in the docstrings


@kernel
def _first_above(cumulative: Array, begin: int, end: int, x: float) -> int:
    """Smallest i in [begin, end) with ``cumulative[i] > x``; end - 1 when none is."""
    low, high = begin, end - 1
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] > x:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def row_sums_running(bounds: Array, weights: Array) -> Array:
    """Running sums of ``weights`` that start anew at each of ``bounds`` (S + 1,)."""
    sums = np.empty(len(weights))
    for a in range(len(bounds) - 1):
        total = 0.0
        for i in range(bounds[a], bounds[a + 1]):
            total += weights[i]
            sums[i] = total
    return sums


@kernel
def draw_free(
    numbered: NumberedRules,
    choices: Choices,
    start: int,
    n: int,
    state: Array,
    max_nodes: int,
) -> tuple[Array, Array, Array, Array, bool]:
    """Draw ``n`` derivations of ``start``.

    The weights of ``choices`` are probabilities. Gives rules (N,), ends (n + 1,), tokens (n,), log probabilities (n,)
    and whether all stayed below ``max_nodes``.
    """
    left, right, logp, n_binary, n_unary = numbered
    options, bounds, sums = choices
    rules = np.empty(64 * n + 64, dtype=np.int32)
    ends = np.zeros(n + 1, dtype=np.int64)
    tokens = np.zeros(n, dtype=np.int32)
    log_prob = np.zeros(n)
    stack = np.empty(1024, dtype=np.int32)
    used = 0
    for s in range(n):
        stack[0] = start
        depth = 1
        total = 0.0
        while depth > 0:
            depth -= 1
            a = stack[depth]
            begin, end = bounds[a], bounds[a + 1]
            rule = options[_first_above(sums, begin, end, uniform(state) * sums[end - 1])]
            if used - ends[s] >= max_nodes:
                return rules[:used], ends, tokens, log_prob, False
            rules = room(rules, used + 1)
            rules[used] = rule
            used += 1
            total += logp[rule]
            if rule >= n_binary + n_unary:
                tokens[s] += 1
            elif rule >= n_binary:
                stack[depth] = left[rule]
                depth += 1
            else:
                stack = room(stack, depth + 2)
                stack[depth] = right[rule]
                stack[depth + 1] = left[rule]
                depth += 2
        ends[s + 1] = used
        log_prob[s] = total
    return rules[:used], ends, tokens, log_prob, True


@kernel
def _splits(left: int, right: int, n: int, sizes: Array) -> tuple[int, int]:
    """Least number of tokens of the left child among n, and the greatest plus one; ``sizes`` as in the kernel below."""
    return max(sizes[left, 0], n - sizes[right, 1]), min(sizes[left, 1], n - sizes[right, 0]) + 1


@kernel
def _convolution(left: int, right: int, n: int, mass: Array, sizes: Array) -> float:
    """Sum over k in 1..n-1 of ``mass[left, k] * mass[right, n - k]``."""
    total = 0.0
    low, high = _splits(left, right, n, sizes)
    for k in range(low, high):
        total += mass[left, k] * mass[right, n - k]
    return total


@kernel
def draw_conditioned(
    numbered: NumberedRules,
    phrases: Choices,
    ready: Array,
    words: Choices,
    mass: Array,
    sizes: Array,
    low: int,
    high: int,
    start: int,
    n: int,
    state: Array,
    max_nodes: int,
) -> tuple[Array, Array, Array, Array, bool]:
    """Draw ``n`` derivations of ``start`` given that the length is in ``low..high``, without rejection.

    ``mass`` (S, high + 1) holds P(A yields exactly m tokens), ``sizes`` (S, 2) the least and the greatest such m. At a
    symbol that owes m tokens a rule is taken with weight p * mass of its children, a binary rule's split with
    mass(left, k) * mass(right, m - k).
    ``phrases.sums`` (high + 1, P) and ``ready`` (high + 1, S) are filled here, a row when first needed:
    running weights of the binary and unary rules of a symbol; ``words.sums`` those of unary and lexical rules
    for one token. Results as in `draw_free`.
    """
    left, right, logp, n_binary, n_unary = numbered
    phrase_options, phrase_bounds, phrase_sums = phrases
    word_options, word_bounds, word_sums = words
    length_sums = np.cumsum(mass[start, low : high + 1])
    rules = np.empty(64 * n + 64, dtype=np.int32)
    ends = np.zeros(n + 1, dtype=np.int64)
    tokens = np.zeros(n, dtype=np.int32)
    log_prob = np.zeros(n)
    stack = np.empty((high + 1, 2), dtype=np.int32)
    used = 0
    for s in range(n):
        m = low + _first_above(length_sums, 0, len(length_sums), uniform(state) * length_sums[-1])
        tokens[s] = m
        stack[0, 0] = start
        stack[0, 1] = m
        depth = 1
        total = 0.0
        while depth > 0:
            depth -= 1
            a, m = stack[depth, 0], stack[depth, 1]
            if m == 1:
                begin, end = word_bounds[a], word_bounds[a + 1]
                rule = word_options[_first_above(word_sums, begin, end, uniform(state) * word_sums[end - 1])]
            else:
                begin, end = phrase_bounds[a], phrase_bounds[a + 1]
                row = phrase_sums[m]
                if not ready[m, a]:
                    running = 0.0
                    for i in range(begin, end):
                        r = phrase_options[i]
                        weight = mass[left[r], m] if r >= n_binary else _convolution(left[r], right[r], m, mass, sizes)
                        running += np.exp(logp[r]) * weight
                        row[i] = running
                    ready[m, a] = True
                rule = phrase_options[_first_above(row, begin, end, uniform(state) * row[end - 1])]
            if used - ends[s] >= max_nodes:
                return rules[:used], ends, tokens, log_prob, False
            rules = room(rules, used + 1)
            rules[used] = rule
            used += 1
            total += logp[rule]
            if rule >= n_binary + n_unary:
                continue
            if rule >= n_binary:
                stack[depth, 0] = left[rule]
                stack[depth, 1] = m
                depth += 1
                continue
            b, c = left[rule], right[rule]
            x = uniform(state) * _convolution(b, c, m, mass, sizes)
            running = 0.0
            split = 1
            first, last = _splits(b, c, m, sizes)
            for k in range(first, last):
                weight = mass[b, k] * mass[c, m - k]
                if weight > 0.0:
                    split = k
                    running += weight
                    if running > x:
                        break
            stack[depth, 0] = c
            stack[depth, 1] = m - split
            stack[depth + 1, 0] = b
            stack[depth + 1, 1] = split
            depth += 2
        ends[s + 1] = used
        log_prob[s] = total
    return rules[:used], ends, tokens, log_prob, True
