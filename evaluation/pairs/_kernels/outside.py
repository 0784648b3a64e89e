"""Kernel: outside weights of one span below another, whatever its content."""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar._kernels.kernel import kernel
from truesource.grammar._kernels.rules import InsideChart, PairRules, SparseRows


@kernel
def _add(above, power, at, part, own):
    """Add the weights ``part * 2^own`` to row ``at`` of ``above``, whose power is ``power[at]``; clears ``part``."""
    if above[at].max() == 0.0:
        power[at] = own
    if own > power[at]:
        above[at] *= math.ldexp(1.0, max(power[at] - own, -2000))
        power[at] = own
    above[at] += part * math.ldexp(1.0, max(own - power[at], -2000))
    part[:] = 0.0


@kernel
def _chains(row, closed, closure: SparseRows):
    """Put the weights ``row`` below unary chains into ``closed``, the largest in [0.5, 1); returns their power."""
    closure_start, closure_column, closure_value = closure
    for b in range(closed.size):
        closed[b] = 0.0
        for e in range(closure_start[b], closure_start[b + 1]):
            closed[b] += closure_value[e] * row[closure_column[e]]
    largest = closed.max()
    if largest == 0.0:
        return np.int64(0)
    exponent = math.frexp(largest)[1]
    # two steps: the inverse of the smallest floats would overflow
    closed *= math.ldexp(1.0, -(exponent // 2))
    closed *= math.ldexp(1.0, exponent // 2 - exponent)
    return np.int64(exponent)


@kernel
def outside_of_span(weights, first, last, begin, end, chart: InsideChart, closure: SparseRows, pairs: PairRules):
    """Compute outside weights of ``[begin, end)`` if the derivation of ``[first, last)`` has weights (S,) at its top.

    The content of ``[begin, end)`` does not matter. ``chart`` and the rules are as in
    `truesource.grammar.inference._kernels.posterior`; only spans next to ``[begin, end)`` are used.

    Returns:
        closed (S,) and a power of two: the weights are ``closed * 2^power``, unary chains above the symbol included.
    """
    inside, _, shift, listed, count = chart
    _, pair_right, by_left, rule_start, parent, prob = pairs
    n_states = by_left.size - 1
    ends = last - end + 1
    # the span (i, j) around [begin, end) has the row (i - first) * ends + (j - end)
    above = np.zeros(((begin - first + 1) * ends, n_states))
    power = np.zeros(len(above), dtype=np.int64)
    above[ends - 1] = weights
    closed = np.zeros(n_states)
    part = np.zeros(n_states)
    demand = np.zeros(pair_right.size)
    for length in range(last - first, end - begin, -1):
        for i in range(max(first, end - length), min(begin, last - length) + 1):
            j = i + length
            at = (i - first) * ends + (j - end)
            power[at] += _chains(above[at], closed, closure)
            if closed.max() == 0.0:
                continue
            for p in range(pair_right.size):
                demand[p] = 0.0
                for r in range(rule_start[p], rule_start[p + 1]):
                    demand[p] += prob[r] * closed[parent[r]]
            for k in range(end, j):  # [begin, end) is in the left child
                beside = j * (j - 1) // 2 + k
                if count[beside] > 0:
                    for b in range(n_states):
                        for p in range(by_left[b], by_left[b + 1]):
                            part[b] += demand[p] * inside[beside, pair_right[p]]
                    _add(above, power, (i - first) * ends + (k - end), part, power[at] + shift[beside])
            for k in range(i + 1, begin + 1):  # in the right one
                beside = k * (k - 1) // 2 + i
                if count[beside] > 0:
                    for x in range(count[beside]):
                        b = listed[beside, x]
                        for p in range(by_left[b], by_left[b + 1]):
                            part[pair_right[p]] += demand[p] * inside[beside, b]
                    _add(above, power, (k - first) * ends + (j - end), part, power[at] + shift[beside])
    at = (begin - first) * ends
    power[at] += _chains(above[at], closed, closure)
    return closed, power[at]
