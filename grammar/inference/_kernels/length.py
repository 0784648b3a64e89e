"""Kernel: inside mass of every symbol at every sentence length."""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import PairRules


@kernel
def length_masses(high, leaf, pairs: PairRules, closure):
    """``out[m, A] = P(A yields exactly m tokens)``, (high+1, S); row 0 is zero.

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
