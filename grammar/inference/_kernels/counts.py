"""Kernels: outside masses of every symbol at every length, and inside masses by token class and by tree height.

Masses are (S, N+1) by symbol, then number of tokens 0 to N; ``mirror`` is the same with lengths reversed, so that a
sum over splits runs forward through both. ``first`` and ``last`` (S,) are the shortest and longest length that a
symbol can have (first above last where it has none): splits outside them are skipped.
"""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import LengthTable, PairRules


@kernel
def rule_counts(table: LengthTable, start, seed, pairs: PairRules, closure):
    """Outside masses and expected uses of binary rules.

    ``seed`` (N+1,) is the weight of a sentence of each length. Returns the outside masses (N+1, S), unary chains
    above included and valid where the inside mass is positive, and the uses of each rule (R,) in the order given.
    """
    masses, mirror, first, last = table
    left, right, _, rule_start, parent, prob = pairs
    n_states, top = masses.shape[0], masses.shape[1] - 1
    below = np.zeros((n_states, top + 1))
    outside = np.zeros((top + 1, n_states))
    uses = np.zeros(parent.size)
    above = np.ascontiguousarray(closure.T)
    bare = np.zeros(n_states)
    for n in range(top, 0, -1):
        bare[:] = below[:, n]
        bare[start] += seed[n]
        weight = np.dot(above, bare)
        outside[n] = weight
        for p in range(left.size):
            b, c = left[p], right[p]
            low, high = max(first[b], n - last[c]), min(last[b], n - first[c])
            if low > high:
                continue
            context = 0.0
            for r in range(rule_start[p], rule_start[p + 1]):
                context += prob[r] * weight[parent[r]]
            if context == 0.0:
                continue
            inner = 0.0
            shift = top - n
            for k in range(low, high + 1):
                inner += masses[b, k] * mirror[c, shift + k]
            for r in range(rule_start[p], rule_start[p + 1]):
                uses[r] += prob[r] * weight[parent[r]] * inner
            for k in range(low, high + 1):
                below[b, k] += context * mirror[c, shift + k]
            for k in range(n - high, n - low + 1):
                below[c, k] += context * mirror[b, shift + k]
    return outside, uses


@kernel
def class_masses(top, plain, marked, table: LengthTable, pairs: PairRules, closure):
    """``out[n, A, m] = P(A yields n tokens, m of them in the class)``, (N+1, S, N+1).

    ``plain`` and ``marked`` (S,) are the probability of one token outside and in the class.
    """
    _, _, first, last = table
    left, right, _, rule_start, parent, prob = pairs
    n_states = plain.size
    out = np.zeros((top + 1, n_states, top + 1))
    total = np.zeros(top + 1)
    for n in range(1, top + 1):
        bare = np.zeros((n_states, n + 1))
        if n == 1:
            bare[:, 0] = plain
            bare[:, 1] = marked
        for p in range(left.size):
            b, c = left[p], right[p]
            low, high = max(first[b], n - last[c]), min(last[b], n - first[c])
            if low > high:
                continue
            total[: n + 1] = 0.0
            for k in range(low, high + 1):
                rest = n - k
                for i in range(k + 1):
                    x = out[k, b, i]
                    if x > 0.0:
                        for j in range(rest + 1):
                            total[i + j] += x * out[rest, c, j]
            for r in range(rule_start[p], rule_start[p + 1]):
                a, weight = parent[r], prob[r]
                for m in range(n + 1):
                    bare[a, m] += weight * total[m]
        out[n, :, : n + 1] = np.dot(closure, bare)
    return out


@kernel
def split_masses(masses, mirror, pairs: PairRules):
    """One application of the binary rules to masses by length, (S, N+1)."""
    left, right, _, rule_start, parent, prob = pairs
    n_states, top = masses.shape[0], masses.shape[1] - 1
    out = np.zeros((n_states, top + 1))
    total = np.zeros(top + 1)
    for p in range(left.size):
        b, c = left[p], right[p]
        some = 0.0
        for n in range(2, top + 1):
            value = 0.0
            for k in range(1, n):
                value += masses[b, k] * mirror[c, top - n + k]
            total[n] = value
            some += value
        if some > 0.0:
            for r in range(rule_start[p], rule_start[p + 1]):
                a, weight = parent[r], prob[r]
                for n in range(2, top + 1):
                    out[a, n] += weight * total[n]
    return out


@kernel
def split_spans(chart, pairs: PairRules):
    """One application of the binary rules to the spans of a sentence.

    ``chart`` (S, n+1, n+1) holds the weight of each symbol over tokens i to j at [symbol, i, j]; so does the result.
    """
    left, right, _, rule_start, parent, prob = pairs
    n_states, n = chart.shape[0], chart.shape[1] - 1
    out = np.zeros((n_states, n + 1, n + 1))
    total = np.zeros(n + 1)
    for p in range(left.size):
        b, c = left[p], right[p]
        for i in range(n - 1):
            total[:] = 0.0
            some = False
            for k in range(i + 1, n):
                x = chart[b, i, k]
                if x > 0.0:
                    some = True
                    for j in range(k + 1, n + 1):
                        total[j] += x * chart[c, k, j]
            if some:
                for r in range(rule_start[p], rule_start[p + 1]):
                    a, weight = parent[r], prob[r]
                    for j in range(i + 2, n + 1):
                        out[a, i, j] += weight * total[j]
    return out
