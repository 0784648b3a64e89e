"""Kernels: probability that words occur, a batch of words at a time as the innermost, contiguous axis."""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import LengthTable, LexicalRules, PairRules, SparseRows


@kernel
def occurrence(table: LengthTable, start, words: LexicalRules, pairs: PairRules, chains: SparseRows):
    """``out[n, w] = P(the start symbol yields n tokens, word w among them)``, (N+1, W).

    ``words`` are the lexical rules of the batch's words, ``chains`` the rows of the unary closure. With d the mass of
    yields with the word and s of those without it, a split adds ``d_left mass_right + s_left d_right``: positive terms
    only, so that rare words keep their precision.
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
    """The binary rules applied to the square of ``value`` (S, W): ``sum_BC P(A -> B C) value_B value_C``, (S, W)."""
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
