"""Kernel: the sum of all powers of a non-negative matrix."""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.kernel import kernel

NEAR_ONE = 1.0 - 1e-14  #: a return weight above this leaves no digit of its distance from 1


@kernel(fastmath={"contract"})
def star(matrix):
    """``(I - matrix)^-1`` (n, n), in place, by Kleene's elimination: only sums and products of what is positive.

    The one difference is ``1 - matrix[k, k]``, so that every entry, however small beside the others, has the relative
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
