"""Kernels: masses by length, outside, by token class and by tree height; words that occur; sums of matrix powers.

Masses are (S, N+1) by symbol, then number of tokens 0 to N; ``mirror`` has the lengths reversed, so that a sum over
splits runs forward through both. ``first`` and ``last`` (S,) are the shortest and longest length that a symbol can have
(first above last if it has none): splits outside them are skipped. Words that may occur come in batches, which are the
innermost, contiguous axis.
"""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import LengthTable, LexicalRules, PairRules, SparseRows

NEAR_ONE = 1.0 - 1e-14  #: above this, the distance of a return weight from 1 has no correct digit


@kernel
def rule_counts(table: LengthTable, start, seed, pairs: PairRules, closure):
    """Return outside masses and expected uses of binary rules.

    ``seed`` (N+1,) is the weight of a sentence of each length. The outside masses (N+1, S) include unary chains above
    and are valid where the inside mass is positive. The uses of each rule are (R,), in the given order.
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
    """Return ``out[n, A, m] = P(A yields n tokens, m of them in the class)``, (N+1, S, N+1).

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
    """Apply the binary rules once to masses by length, (S, N+1)."""
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
def occurrence(table: LengthTable, start, words: LexicalRules, pairs: PairRules, chains: SparseRows):
    """Return ``out[n, w] = P(the start symbol yields n tokens, word w among them)``, (N+1, W).

    ``words`` are the lexical rules of the batch's words, ``chains`` the rows of the unary closure. With d the mass of
    yields with the word and s the mass of yields without it, a split adds ``d_left mass_right + s_left d_right``:
    positive terms only, so that rare words keep their precision.
    """
    masses, _, first, last = table
    word_start, word_parent, word_prob = words
    left, right, _, rule_start, parent, prob = pairs
    chain_start, chain_to, chain_weight = chains
    n_states, top = masses.shape[0], masses.shape[1] - 1
    width = word_start.size - 1
    has = np.zeros((n_states, top + 1, width))
    lacks = np.zeros((n_states, top + 1, width))
    out = np.zeros((top + 1, width))
    bare = np.zeros((n_states, width))
    total = np.zeros(width)
    for n in range(1, top + 1):
        bare[:] = 0.0
        if n == 1:
            for w in range(width):
                for r in range(word_start[w], word_start[w + 1]):
                    bare[word_parent[r], w] += word_prob[r]
        for p in range(left.size):
            b, c = left[p], right[p]
            low, high = max(first[b], n - last[c]), min(last[b], n - first[c])
            if low > high:
                continue
            total[:] = 0.0
            for k in range(low, high + 1):
                whole, rest = masses[c, n - k], n - k
                for w in range(width):
                    total[w] += has[b, k, w] * whole + lacks[b, k, w] * has[c, rest, w]
            for r in range(rule_start[p], rule_start[p + 1]):
                a, weight = parent[r], prob[r]
                for w in range(width):
                    bare[a, w] += weight * total[w]
        for a in range(n_states):
            if n < first[a] or n > last[a]:
                continue
            for e in range(chain_start[a], chain_start[a + 1]):
                b, weight = chain_to[e], chain_weight[e]
                for w in range(width):
                    has[a, n, w] += weight * bare[b, w]
            whole = masses[a, n]
            for w in range(width):
                has[a, n, w] = min(has[a, n, w], whole)
                lacks[a, n, w] = whole - has[a, n, w]
        for w in range(width):
            out[n, w] = has[start, n, w]
    return out


@kernel
def products(value, pairs: PairRules):
    """Apply the binary rules to the square of ``value`` (S, W): ``sum_BC P(A -> B C) value_B value_C``, (S, W)."""
    left, right, _, rule_start, parent, prob = pairs
    out = np.zeros(value.shape)
    width = value.shape[1]
    total = np.zeros(width)
    for p in range(left.size):
        b, c = left[p], right[p]
        for w in range(width):
            total[w] = value[b, w] * value[c, w]
        for r in range(rule_start[p], rule_start[p + 1]):
            a, weight = parent[r], prob[r]
            for w in range(width):
                out[a, w] += weight * total[w]
    return out


@kernel
def length_masses(high, leaf, pairs: PairRules, closure):
    """Return ``out[m, A] = P(A yields exactly m tokens)``, (high+1, S); row 0 is zero.

    ``leaf`` (S,) is the probability of one token without unary steps, ``closure`` (S, S) the unary closure. Splits are
    summed per pair before rules are applied.
    """
    left, right, _, rule_start, parent, prob = pairs
    n_states = leaf.size
    out = np.zeros((high + 1, n_states))
    for m in range(1, high + 1):
        bare = np.zeros(n_states)
        if m == 1:
            bare[:] = leaf
        else:
            for p in range(left.size):
                b, c = left[p], right[p]
                total = 0.0
                for k in range(1, m):
                    total += out[k, b] * out[m - k, c]
                if total > 0.0:
                    for r in range(rule_start[p], rule_start[p + 1]):
                        bare[parent[r]] += prob[r] * total
        out[m] = np.dot(closure, bare)
    return out


@kernel(fastmath={"contract"})
def star(matrix):
    """Compute ``(I - matrix)^-1`` (n, n), in place, by Kleene's elimination: only sums and products of positive terms.

    The one difference is ``1 - matrix[k, k]``, so that every entry, even if much smaller than others, has the relative
    precision of the matrix; elimination with pivots leaves an error of the size of the largest entry in all of them.

    Returns:
        Whether the sum of all powers is finite.
    """
    n = matrix.shape[0]
    for k in range(n):
        if not matrix[k, k] < NEAR_ONE:
            return False
        again = 1.0 / (1.0 - matrix[k, k])
        row = matrix[k].copy()
        for i in range(n):
            if i != k and matrix[i, k] != 0.0:
                weight = matrix[i, k] * again
                for j in range(n):
                    matrix[i, j] += weight * row[j]
        for j in range(n):
            matrix[k, j] *= again
    for k in range(n):
        matrix[k, k] += 1.0
    return np.isfinite(matrix).all()


@kernel
def close_series(rows: SparseRows, chains: SparseRows, x, present):
    """Solve ``x[i] = chains (x[i] + sum_{d=1..i} rows_d x[i-d])`` for i = 0, 1, .., in place; ``x`` is (L, S, W).

    Entry e of ``rows`` has a value for each d, (nnz, at least L). ``present`` (L, S) says which rows of ``x`` are not
    zero throughout, before and after.
    """
    start, column, value = rows
    chain_start, chain_to, chain_weight = chains
    length, n_states, width = x.shape
    bare = np.zeros((n_states, width))
    some = np.zeros(n_states, dtype=np.bool_)
    for i in range(length):
        for a in range(n_states):
            some[a] = present[i, a]
            bare[a] = x[i, a]
            for e in range(start[a], start[a + 1]):
                c = column[e]
                for d in range(1, i + 1):
                    weight = value[e, d]
                    if weight != 0.0 and present[i - d, c]:
                        some[a] = True
                        for w in range(width):
                            bare[a, w] += weight * x[i - d, c, w]
        for a in range(n_states):
            x[i, a] = 0.0
            present[i, a] = False
            for e in range(chain_start[a], chain_start[a + 1]):
                if some[chain_to[e]]:
                    present[i, a] = True
                    weight = chain_weight[e]
                    for w in range(width):
                        x[i, a, w] += weight * bare[chain_to[e], w]


@kernel
def spread_series(rows: SparseRows, x, present, out, out_present):
    """Add ``sum_{d=0..i} rows_d x[i-d]`` to ``out[i]``, as in `close_series`; ``out`` is (L', S, W) with L' <= L."""
    start, column, value = rows
    width = x.shape[2]
    for i in range(out.shape[0]):
        for a in range(out.shape[1]):
            for e in range(start[a], start[a + 1]):
                c = column[e]
                for d in range(i + 1):
                    weight = value[e, d]
                    if weight != 0.0 and present[i - d, c]:
                        out_present[i, a] = True
                        for w in range(width):
                            out[i, a, w] += weight * x[i - d, c, w]


@kernel
def join_series(triples, prob, x, present, at, span, out, out_present):
    """Add ``prob x[i, a, at[w]] span[b, w]`` to ``out[i, c, w]`` for every triple (a, b, c).

    ``span`` is (S, W), ``at`` (W,), and ``out`` (L', S, W) with L' <= L.
    """
    width = span.shape[1]
    there = np.zeros(span.shape[0], dtype=np.bool_)
    for a in range(span.shape[0]):
        for w in range(width):
            if span[a, w] != 0.0:
                there[a] = True
                break
    weight = np.zeros(width)
    for r in range(prob.size):
        a, b, c = triples[r, 0], triples[r, 1], triples[r, 2]
        if there[b]:
            for w in range(width):
                weight[w] = prob[r] * span[b, w]
            for i in range(out.shape[0]):
                if present[i, a]:
                    out_present[i, c] = True
                    for w in range(width):
                        out[i, c, w] += weight[w] * x[i, a, at[w]]
