"""Kernel: outside weights of the preterminal positions of a batch, from the inside chart."""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import PairRules, SparseRows


@kernel(fastmath={"contract"})
def outside_leaves(inside, present, n, start, cap, closure: SparseRows, pairs: PairRules):
    """Outside weight of every preterminal position, unary chains above it included, (n, S, W).

    ``inside`` (spans, S, W) and ``present`` (spans, S) come from a pass of `causal`. States that cannot
    make the observed word have their outside weight too: the distribution over *all* words follows from it.
    Weights are scaled as the inside chart is, and capped at ``cap``; also gives which sentences had a capped one, (W,).
    """
    closure_start, closure_column, closure_value = closure
    _, pair_right, by_left, rule_start, parent, prob = pairs
    n_states = by_left.size - 1
    width = inside.shape[2]
    n_spans = n * (n + 1) // 2
    outside = np.zeros((n_spans, n_states, width), dtype=inside.dtype)
    leaves = np.zeros((n, n_states, width), dtype=inside.dtype)
    closed = np.zeros((n_states, width), dtype=inside.dtype)
    demand = np.zeros(width, dtype=inside.dtype)
    capped = np.zeros(width, dtype=np.bool_)
    flags = np.zeros(n_states, dtype=np.bool_)
    outside[n * (n - 1) // 2, start, :] = 1.0
    for length in range(n, 0, -1):
        for i in range(n - length + 1):
            j = i + length
            span = j * (j - 1) // 2 + i
            closed[:] = 0.0
            flags[:] = False
            for a in range(n_states):
                weighty = False
                for w in range(width):
                    if outside[span, a, w] != 0.0:
                        weighty = True
                        break
                if weighty:
                    for e in range(closure_start[a], closure_start[a + 1]):
                        b = closure_column[e]
                        weight = closure_value[e]
                        flags[b] = True
                        for w in range(width):
                            closed[b, w] += weight * outside[span, a, w]
            for a in range(n_states):
                if flags[a]:
                    high = False
                    for w in range(width):
                        high |= not closed[a, w] < cap
                        closed[a, w] = min(closed[a, w], cap)
                    if high:
                        for w in range(width):
                            capped[w] |= not closed[a, w] < cap
            if length == 1:
                for a in range(n_states):
                    for w in range(width):
                        leaves[i, a, w] = closed[a, w]
                continue
            for b in range(n_states):
                for p in range(by_left[b], by_left[b + 1]):
                    c = pair_right[p]
                    begun = False
                    for r in range(rule_start[p], rule_start[p + 1]):
                        a = parent[r]
                        if not flags[a]:
                            continue
                        weight = prob[r]
                        if begun:
                            for w in range(width):
                                demand[w] += weight * closed[a, w]
                        else:
                            begun = True
                            for w in range(width):
                                demand[w] = weight * closed[a, w]
                    if not begun:
                        continue
                    for k in range(i + 1, j):
                        left = k * (k - 1) // 2 + i
                        right = j * (j - 1) // 2 + k
                        if present[right, c]:
                            for w in range(width):
                                outside[left, b, w] += demand[w] * inside[right, c, w]
                        if present[left, b]:
                            for w in range(width):
                                outside[right, c, w] += demand[w] * inside[left, b, w]
    return leaves, capped
