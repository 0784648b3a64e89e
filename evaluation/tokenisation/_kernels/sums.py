"""Kernels: sums over the paths of lattices.

Positions of several concatenated texts are separated by ``bounds`` (K+1,): no arc crosses a bound.

Sums over paths stay logarithms, and exponentials are taken only of differences to the largest term: where one arc ends,
which is at a third of all positions, no exponential is needed, and no score is too small. `partition_entropy` takes all
exponentials at once instead.
"""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar._kernels.kernel import kernel

MOST = 2**62  #: maximum count
LARGE, TOO_LARGE = 2.0**200, 2.0**900  #: masses restart at the first; beyond the second, logarithms are used
SHIFT = 1.5 * 2.0**52
LOG2_E = 1.4426950408889634
LN_2_HIGH, LN_2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10  #: their sum is ln 2; the first ends in zeros


@kernel(inline="always")
def _best_arc(first, source, score, b, log, i):
    """Find the arc with the largest term of those that end at i, the first of equal ones, and its term."""
    best, top = first[i], -np.inf
    for w in range(first[i], first[i + 1]):
        term = log[source[w]] + b * score[w]
        if term > top:
            best, top = w, term
    return best, top


@kernel
def _forward(first, source, score, b, low, high, log):
    """Fill log[low..high] with ln of the sum over paths from ``low``."""
    log[low] = 0.0
    for i in range(low + 1, high + 1):
        begin, end = first[i], first[i + 1]
        if begin == end:
            log[i] = -np.inf
        elif end - begin == 1:
            log[i] = log[source[begin]] + b * score[begin]
        else:
            best, top = _best_arc(first, source, score, b, log, i)
            rest = 0.0
            for w in range(begin, end):
                if w != best:
                    rest += math.exp(-(top - (log[source[w]] + b * score[w])))
            log[i] = top + math.log1p(rest)


@kernel
def _forward_entropy(first, source, score, b, low, high, log, entropy):
    """Sum like `_forward`, and compute entropies of paths from ``low`` (Cao & Rimell 2021, algorithm 1).

    All terms are positive: for the largest arc ln(1 + rest), for another arc the same plus its deficit.
    """
    log[low] = 0.0
    entropy[low] = 0.0
    for i in range(low + 1, high + 1):
        begin, end = first[i], first[i + 1]
        if begin == end:
            log[i] = -np.inf
        elif end - begin == 1:
            j = source[begin]
            log[i] = log[j] + b * score[begin]
            entropy[i] = entropy[j]
        else:
            best, top = _best_arc(first, source, score, b, log, i)
            rest, total = 0.0, entropy[source[best]]
            for w in range(begin, end):
                if w != best:
                    j = source[w]
                    lack = top - (log[j] + b * score[w])
                    p = math.exp(-lack)
                    rest += p
                    total += p * (lack + entropy[j])
            more = math.log1p(rest)
            log[i] = top + more
            entropy[i] = more + total / (1.0 + rest)


@kernel
def _backward(first, source, score, b, low, high, log, mass, marginal):
    """Distribute mass[high] over the arcs between ``low`` and ``high``; ``mass`` (n+1,) is 0 at all other positions."""
    for i in range(high, low, -1):
        begin, end = first[i], first[i + 1]
        if end - begin == 1:
            marginal[begin] = mass[i]
            mass[source[begin]] += mass[i]
        elif end > begin:
            _, top = _best_arc(first, source, score, b, log, i)
            total = 0.0
            for w in range(begin, end):
                marginal[w] = math.exp(log[source[w]] + b * score[w] - top)
                total += marginal[w]
            for w in range(begin, end):
                marginal[w] *= mass[i] / total
                mass[source[w]] += marginal[w]


@kernel
def forward(first, source, score, b):
    """Compute ln of the sum over paths from 0, (n+1,); -inf at positions on no path."""
    n = len(first) - 2
    log = np.empty(n + 1)
    _forward(first, source, score, b, 0, n, log)
    return log


@kernel
def decay(lack, weight):
    """Fill ``weight`` with exp(-lack), lack >= 0, to 1e-15; 0 from 700 on. The compiler makes vectors of the loops."""
    shifted = np.empty(len(lack))
    for w in range(len(lack)):
        x = -lack[w] if lack[w] < 700.0 else -700.0
        shifted[w] = x * LOG2_E + SHIFT  # the last bits are the nearest whole number
        power = shifted[w] - SHIFT
        r = (x - power * LN_2_HIGH) - power * LN_2_LOW
        s = r * r
        q = s * s
        low = (1.0 + r) + s * (1 / 2 + r * (1 / 6)) + q * ((1 / 24 + r * (1 / 120)) + s * (1 / 720 + r * (1 / 5040)))
        high = (1 / 40320 + r * (1 / 362880)) + s * (1 / 3628800 + r * (1 / 39916800))
        highest = 1 / 479001600 + r * (1 / 6227020800)
        weight[w] = low + q * q * (high + q * highest) if lack[w] < 700.0 else 0.0
    bits = shifted.view(np.int64)
    for w in range(len(lack)):
        bits[w] = (bits[w] << 52) + (1023 << 52)
    for w in range(len(lack)):
        weight[w] *= shifted[w]


@kernel
def _is_met(first, source, i, last):
    """Return True if no arc that ends at i+1 to ``last`` starts before i."""
    met = True
    for k in range(i + 1, last + 1):
        met &= first[k] == first[k + 1] or source[first[k]] >= i
    return met


@kernel
def partition_entropy(first, source, score, b):
    """Compute log Z_b and the entropy of the paths.

    First the largest sums and the deficits of arcs; then the sums over paths in units of the largest, which
    are 1 or more, and the deficits of paths in the same units: log Z_b is the largest sum plus log(mass), the entropy
    log(mass) + cost/mass. If masses become large, they restart at the next position at which all paths meet.
    """
    n = len(first) - 2
    best, mass, cost = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1)
    lack, weight = np.empty(len(source)), np.empty(len(source))
    best[0], mass[0], cost[0] = 0.0, 1.0, 0.0
    longest = 0
    for i in range(1, n + 1):
        begin, end = first[i], first[i + 1]
        top = -np.inf
        for w in range(begin, end):
            lack[w] = best[source[w]] + b * score[w]
            top = max(top, lack[w])
        for w in range(begin, end):
            lack[w] = top - lack[w]
        best[i] = top
        if begin < end:
            longest = max(longest, i - source[begin])
    if not math.isfinite(best[n]):
        return best[n], 0.0
    decay(lack, weight)
    more, entropy = 0.0, 0.0
    for i in range(1, n + 1):
        some, lost = 0.0, 0.0
        for w in range(first[i], first[i + 1]):
            j = source[w]
            x = weight[w] * mass[j]
            some += x
            lost += weight[w] * cost[j] + x * lack[w]
        if some > LARGE:
            if some > TOO_LARGE:
                _forward_entropy(first, source, score, b, 0, n, mass, cost)
                return mass[n], cost[n]
            if _is_met(first, source, i, min(n, i + longest)):
                more += math.log(some)
                entropy += lost / some
                some, lost = 1.0, 0.0
        mass[i] = some
        cost[i] = lost
    more += math.log(mass[n])
    return best[n] + more, entropy + more + cost[n] / mass[n]


@kernel
def marginals(first, source, score, b, bounds, weight):
    """Compute the expected count of each arc, (A,), over ``weight[k]`` sampled paths of text k; ln Z_b, (K,)."""
    n = len(first) - 2
    log, mass = np.empty(n + 1), np.zeros(n + 1)
    marginal = np.empty(len(source))
    partition = np.empty(len(bounds) - 1)
    for k in range(len(bounds) - 1):
        low, high = bounds[k], bounds[k + 1]
        _forward(first, source, score, b, low, high, log)
        partition[k] = log[high]
        mass[high] = weight[k]
        _backward(first, source, score, b, low, high, log, mass, marginal)
    return marginal, partition


@kernel
def sums(first, source, score, b, bounds):
    """Compute for each text: ln Z_b, entropy, ln Z_2b, ln of the number of paths, the number (-1: more than `MOST`)."""
    n = len(first) - 2
    log, entropy = np.empty(n + 1), np.empty(n + 1)
    found = np.empty((4, len(bounds) - 1))
    for k in range(len(bounds) - 1):
        low, high = bounds[k], bounds[k + 1]
        _forward_entropy(first, source, score, b, low, high, log, entropy)
        found[0, k] = log[high]
        found[1, k] = entropy[high]
        _forward(first, source, score, 2.0 * b, low, high, log)
        found[2, k] = log[high]
        _forward(first, source, score, 0.0, low, high, log)
        found[3, k] = log[high]
    return found, counts(first, source, bounds)


@kernel
def counts(first, source, bounds):
    """Count the paths through each text, (K,); -1 if there are more than `MOST`."""
    number = np.zeros(len(first) - 1, dtype=np.int64)
    found = np.empty(len(bounds) - 1, dtype=np.int64)
    for k in range(len(bounds) - 1):
        low, high = bounds[k], bounds[k + 1]
        number[low] = 1
        for i in range(low + 1, high + 1):
            total = 0
            for w in range(first[i], first[i + 1]):
                more = number[source[w]]
                total = -1 if total < 0 or more < 0 or total > MOST - more else total + more
            number[i] = total
        found[k] = number[high]
    return found


@kernel
def best(first, source, score):
    """Find the path with the largest sum of scores; of equal sums, with fewer arcs, then with the longest last arc."""
    n = len(first) - 2
    log = np.full(n + 1, -np.inf)
    length = np.zeros(n + 1, dtype=np.int64)
    back = np.zeros(n + 1, dtype=np.int64)
    log[0] = 0.0
    for i in range(1, n + 1):
        for w in range(first[i], first[i + 1]):
            j = source[w]
            total = log[j] + score[w]
            if total > log[i] or (total == log[i] and length[j] + 1 < length[i]):
                log[i] = total
                length[i] = length[j] + 1
                back[i] = w
    path = np.empty(length[n], dtype=np.int64)
    at = n
    for k in range(length[n] - 1, -1, -1):
        path[k] = back[at]
        at = source[back[at]]
    return path
