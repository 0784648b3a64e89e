"""Numbers of different words at equal numbers of tokens."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from truesource.grammar.support.arrays import IntArray


def expected_types(counts: IntArray, tokens: int) -> float:
    """Expected number of different words in ``tokens`` tokens drawn without replacement.

    ``sum_w 1 - C(N - c_w, n) / C(N, n)`` (rarefaction; Hurlbert 1971).

    Args:
        counts: (V,) occurrences of each word, N in all.
        tokens: n, from 0 to N.
    """
    seen = counts[counts > 0].astype(np.float64)
    total = seen.sum()
    left = total - seen
    can_miss = left >= tokens
    some = left[can_miss]
    missed = gammaln(some + 1) - gammaln(some - tokens + 1) - gammaln(total + 1) + gammaln(total - tokens + 1)
    return float(len(seen) - np.exp(missed).sum())
