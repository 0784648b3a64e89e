"""Kernels: expected number of open constituents after each prefix, from the charts of a left-to-right pass.

A constituent is open after word t if it covers words on both sides. Its weight is the weight of its symbol starting at
word i, times the weight of yields that begin with words i..t and continue. The second factor is a prefix weight of the
symbol, given a range of lengths by the number of words after t. For one t, the prefix weights of all i follow from
prefix weights of larger i: the left child of a rule ends before t and the right child extends beyond, or the left child
does and the right child follows. The last axis of an array is the batch (width W).
"""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import ChartRules, LexicalRules, PairRules, SparseRows


@kernel(fastmath={"contract"})
def _divided(i, t, inside, present, beyond, alive, pairs: PairRules, acc, out, flags):
    """Add ``p(A -> B C) inside(i, k)[B] beyond(k, t)[C, d]`` to ``out[A, d]`` over k and rules; out is (S, D, W)."""
    _, pair_right, by_left, rule_start, parent, prob = pairs
    for b in range(by_left.size - 1):
        for p in range(by_left[b], by_left[b + 1]):
            c = pair_right[p]
            met = False
            for k in range(i + 1, t):
                left = k * (k - 1) // 2 + i
                if not (present[left, b] and alive[k, c]):
                    continue
                if not met:
                    met = True
                    acc[:] = 0.0
                for d in range(acc.shape[0]):
                    for w in range(acc.shape[1]):
                        acc[d, w] += inside[left, b, w] * beyond[k, c, d, w]
            if met:
                for r in range(rule_start[p], rule_start[p + 1]):
                    a = parent[r]
                    weight = prob[r]
                    flags[a] = True
                    for d in range(acc.shape[0]):
                        for w in range(acc.shape[1]):
                            out[a, d, w] += weight * acc[d, w]


@kernel
def _word(words, j, scale, lexicon: LexicalRules, out, flags):
    """Add the weights of word j to ``out`` (S, D, W), with no words after it."""
    start, parent, prob = lexicon
    for w in range(words.shape[1]):
        word = words[j, w]
        if word >= 0:
            for r in range(start[word], start[word + 1]):
                flags[parent[r]] = True
                out[parent[r], 0, w] += prob[r] * scale[w]


@kernel(fastmath={"contract"})
def _up(d, bare, flags, closure: SparseRows, out, alive):
    """Compute ``out[:, d] = M bare[:, d]`` for a sparse matrix M by rows; mark the states that are not zero."""
    row_start, column, value = closure
    for a in range(bare.shape[0]):
        for e in range(row_start[a], row_start[a + 1]):
            b = column[e]
            if flags[b]:
                weight = value[e]
                alive[a] = True
                for w in range(bare.shape[2]):
                    out[a, d, w] += weight * bare[b, d, w]


@kernel(fastmath={"contract"})
def _owe(d, ready, alive, corners: SparseRows, bare, flags):
    """Add ``corner[A -> C, m] ready[C, d - m]`` to ``bare[A, d]`` over m: a left corner, then m words owed."""
    row_start, column, value = corners
    for c in range(ready.shape[0]):
        if alive[c]:
            for e in range(row_start[c], row_start[c + 1]):
                a = column[e]
                flags[a] = True
                for m in range(1, d + 1):
                    weight = value[e, m]
                    if weight != 0.0:
                        for w in range(ready.shape[2]):
                            bare[a, d, w] += weight * ready[c, d - m, w]


@kernel
def free(words, inside, present, scales, begun, corners: SparseRows, rules: ChartRules, label, n_labels):
    """Return expected open constituents by label after each word, (n, n_labels, W), for sentences of any length.

    Arguments are from a pass (`truesource.grammar._kernels.rules.CausalPass`), ``corners`` the rows of the left-corner
    closure; ``label`` (S,) is the label of each symbol, -1 if it is not counted.
    """
    n, width = words.shape
    n_states = label.size
    result = np.zeros((n, n_labels, width))
    acc = np.zeros((1, width))
    for t in range(1, n + 1):
        beyond = np.zeros((t, n_states, 1, width))
        alive = np.zeros((t, n_states), dtype=np.bool_)
        for i in range(t - 1, -1, -1):
            bare, flags = np.zeros((n_states, 1, width)), np.zeros(n_states, dtype=np.bool_)
            if i == t - 1:
                _word(words, i, scales[i], rules.lexicon, bare, flags)
            else:
                _divided(i, t, inside, present, beyond, alive, rules.pairs, acc, bare, flags)
            _up(0, bare, flags, corners, beyond[i], alive[i])
            span = t * (t - 1) // 2 + i
            for a in range(n_states):
                if label[a] >= 0 and alive[i, a]:
                    for w in range(width):
                        more = max(beyond[i, a, 0, w] - inside[span, a, w], 0.0)
                        result[t - 1, label[a], w] += begun[i, a, 0, w] * more
    return result


@kernel
def conditioned(
    words, low, high, inside, present, scales, begun, corners: SparseRows, rules: ChartRules, label, n_labels
):
    """Return the result of `free` given a length from ``low`` to ``high``; ``corners`` are steps by words owed."""
    n, width = words.shape
    n_states = label.size
    result = np.zeros((n, n_labels, width))
    for t in range(1, min(n, high - 1) + 1):
        room = high - t + 1  # words beyond t are 0 to high - t
        acc = np.zeros((room, width))
        beyond = np.zeros((t, n_states, room, width))
        alive = np.zeros((t, n_states), dtype=np.bool_)
        for i in range(t - 1, -1, -1):
            bare, flags = np.zeros((n_states, room, width)), np.zeros(n_states, dtype=np.bool_)
            if i == t - 1:
                _word(words, i, scales[i], rules.lexicon, bare, flags)
            else:
                _divided(i, t, inside, present, beyond, alive, rules.pairs, acc, bare, flags)
            for d in range(room):
                _owe(d, beyond[i], alive[i], corners, bare, flags)
                _up(d, bare, flags, rules.closure, beyond[i], alive[i])
            for a in range(n_states):
                if label[a] >= 0 and alive[i, a]:
                    for d in range(1, room):
                        for r in range(max(low - t - d, 0), high - t - d + 1):
                            for w in range(width):
                                result[t - 1, label[a], w] += begun[i, a, r, w] * beyond[i, a, d, w]
    return result
