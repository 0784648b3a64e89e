"""Exact sums over all paths of a lattice: Q_b(T) = exp(b * score of T) / Z_b, b = 1/tau.

b = 1 is the unigram model's own distribution, b = 0 the uniform one over paths, and the larger b, the more of it lies
on the best path. Every function takes time in proportion to the arcs, and raises `InputError` for a b that is
negative, not finite, or so large that scores times b are no numbers. (Cao & Rimell 2021, section 3; their algorithm 1
with the sign of its logarithm mended.)
"""

from __future__ import annotations

import math

import numpy as np

from truesource.evaluation.tokenisation._kernels import sums as kernels
from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError


def forward(lattice: Lattice, b: float = 1.0) -> FloatArray:
    """(n+1,) log of the sum over paths from 0 to each position, nats; -inf at positions on no path."""
    found: FloatArray = kernels.forward(lattice.first, lattice.source, lattice.score, checked(b))
    finite(found[-1], b)
    return found


def log_partition(lattice: Lattice, b: float = 1.0) -> float:
    """Log Z_b, nats."""
    return partition_and_entropy(lattice, b)[0]


def entropy(lattice: Lattice, b: float = 1.0) -> float:
    """Entropy of Q_b, nats, at least 0."""
    return partition_and_entropy(lattice, b)[1]


def partition_and_entropy(lattice: Lattice, b: float = 1.0) -> tuple[float, float]:
    """Log Z_b and the entropy of Q_b, nats, in one pass."""
    found: tuple[float, float] = kernels.partition_entropy(lattice.first, lattice.source, lattice.score, checked(b))
    finite(found[0] + found[1], b)
    return found


def arc_marginals(lattice: Lattice, b: float = 1.0) -> FloatArray:
    """(A,) probability under Q_b that a path takes each arc, 0 to 1."""
    marginal: FloatArray
    marginal, partition = kernels.marginals(
        lattice.first, lattice.source, lattice.score, checked(b), np.array((0, lattice.n)), np.ones(1)
    )
    finite(partition[0], b)
    return marginal


def log_collision(lattice: Lattice, b: float = 1.0) -> float:
    """Log of the probability that two independent paths from Q_b are the same, sum of Q_b^2, nats, at most 0."""
    once = log_partition(lattice, b)
    finite(2.0 * b, b)
    return min(log_partition(lattice, 2.0 * b) - 2.0 * once, 0.0)


def count_paths(lattice: Lattice) -> int:
    """How many paths there are."""
    # all paths meet at the positions that no arc crosses, so numbers stay small between those
    n = lattice.n
    furthest = np.full(n + 1, n, dtype=np.int64)
    ends = np.flatnonzero(np.diff(lattice.first))
    furthest[ends] = lattice.source[lattice.first[ends]]
    behind = np.minimum.accumulate(furthest[::-1])[::-1]
    met = np.append(np.flatnonzero(behind[1:] >= np.arange(n)), n)
    found = kernels.counts(lattice.first, lattice.source, met)
    whole = found.tolist()
    for k in np.flatnonzero(found < 0).tolist():
        whole[k] = exact_count(lattice, int(met[k]), int(met[k + 1]))
    while len(whole) > 1:  # factors of like size are multiplied fastest
        whole = [math.prod(whole[k : k + 2]) for k in range(0, len(whole), 2)]
    return int(whole[0])


def exact_count(lattice: Lattice, low: int, high: int) -> int:
    """How many paths lead from one position to another, in integers of any size."""
    number = {low: 1}
    source, first = lattice.source.tolist(), lattice.first.tolist()
    for i in range(low + 1, high + 1):
        number[i] = sum(number.get(j, 0) for j in source[first[i] : first[i + 1]])
    return number[high]


def best_path(lattice: Lattice) -> IntArray:
    """Arcs of the path with the largest sum of scores; of equal sums fewer arcs, then the longest last arc."""
    path: IntArray = kernels.best(lattice.first, lattice.source, lattice.score)
    return path


def checked(b: float) -> float:
    """An inverse temperature that can be used."""
    if not (math.isfinite(b) and b >= 0.0):
        raise InputError(f"the inverse temperature must be a finite number, 0 or more, not {b}")
    return float(b)


def finite(value: float, b: float) -> None:
    """Raise `InputError` for a sum, or another number made with b, that is no number."""
    if not math.isfinite(value):
        raise InputError(f"scores times the inverse temperature {b} are no longer numbers; give a smaller one")
