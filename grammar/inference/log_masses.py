"""Masses of symbols by length as logarithms: weights of any size, whose sum over all lengths may be infinite."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar.inference.nonnegative_matrices import solve
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError


def log_length_masses(
    high: int,
    lexical: FloatArray,
    binary: Int32Array,
    log_binary: FloatArray,
    unary: Int32Array,
    log_unary: FloatArray,
) -> FloatArray | None:
    """Return ln of the total weight of all derivations of m = 0..high tokens from each symbol, (high+1, S) nats.

    -inf without one. Only sums over unary chains have infinitely many terms.

    Args:
        high: most tokens.
        lexical: (S,) ln of the total weight of the lexical rules of each symbol, nats.
        binary: (R, 3) parent, left child, right child.
        log_binary: (R,) nats.
        unary: (Q, 2) parent, child.
        log_unary: (Q,) nats.

    Returns:
        The table; None if the sum over unary chains is infinite.
    """
    result = np.full((high + 1, len(lexical)), -np.inf)
    a, b, c = binary.T
    for m in range(1, high + 1):
        direct = lexical
        if m > 1:
            total = np.full(len(binary), -np.inf)
            for i in range(1, m):
                total = np.logaddexp(total, log_binary + result[i, b] + result[m - i, c])
            direct = log_sums(a, total, len(lexical))
        try:
            result[m] = _with_chains(direct, unary, log_unary)
        except InputError:
            return None
    return result


def log_sums(group: Int32Array, logs: FloatArray, n: int) -> FloatArray:
    """Return ln of the sum of exp(logs) of each group 0..n-1, (n,)."""
    top = np.full(n, -np.inf)
    np.maximum.at(top, group, logs)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        return np.asarray(shift + np.log(np.bincount(group, np.exp(logs - shift[group]), n)))


def _with_chains(direct: FloatArray, unary: Int32Array, log_unary: FloatArray) -> FloatArray:
    """Solve x = exp(direct) + Un x and return ln x, (S,).

    Each unknown is divided by the weight of its best chain, so that no exponential exceeds the range of float64.

    Raises:
        InputError: the sum is infinite.
    """
    above, below = unary.T
    best = direct
    for _ in range(len(direct) + 1):
        last, best = best, best.copy()
        np.maximum.at(best, above, log_unary + last[below])
        if np.array_equal(best, last):
            break
    else:
        raise InputError("a cycle of unary rules has a weight above 1; lower the weight of its rules")
    some = np.flatnonzero(np.isfinite(best))
    if not len(unary) or not len(some):
        return best
    place = np.full(len(best), -1)
    place[some] = np.arange(len(some))
    inner = np.isfinite(best[below])  # then the parent has a chain too
    at = place[above[inner]], place[below[inner]]
    with np.errstate(under="ignore"):
        weight = np.exp(log_unary[inner] + best[below[inner]] - best[above[inner]])
        value = solve(csr_matrix((weight, at), shape=(len(some),) * 2), np.exp(direct[some] - best[some]))
    if not (np.isfinite(value) & (value > 0.0)).all():
        raise InputError("the sum over chains of unary rules is infinite; lower the weights of unary rules")
    result = best.copy()
    result[some] += np.log(value)
    return result
