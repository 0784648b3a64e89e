"""Non-negative matrices: sums of their powers, spectral radii with eigenvectors, and reachability."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, identity, linalg, tril, triu
from scipy.sparse.csgraph import breadth_first_order, connected_components

from truesource.grammar.inference._kernels import counts as kernels
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import InputError

CRITICAL = 1e-9  #: if the spectral radius is nearer to 1, total masses and expected counts have half of their digits
LARGE = 1000  #: rows of a matrix above which `solve` sums powers
ORDERED = 10_000  #: rows above which it first tries an elimination order
POWERS = 5000  #: largest number of powers that `solve` sums


def reachable_from(graph: FloatArray | csr_matrix[Any], state: int) -> BoolArray:
    """Return the states reachable from ``state`` along positive entries of an (S, S) matrix, (S,), itself included."""
    edges = graph if isinstance(graph, csr_matrix) else csr_matrix((graph > 0.0).astype(np.int8))
    result = np.zeros(edges.shape[0], dtype=bool)
    result[breadth_first_order(edges, state, return_predecessors=False)] = True
    return result


def reachable(graph: FloatArray) -> BoolArray:
    """Return which state reaches which along positive entries of an (S, S) matrix, itself included, (S, S)."""
    edges = csr_matrix((graph > 0.0).astype(np.int8))
    return np.stack([reachable_from(edges, state) for state in range(len(graph))])


def closure(matrix: FloatArray, what: str) -> FloatArray:
    """Return ``(I - matrix)^-1`` of a non-negative matrix; entries without a path are exactly zero, all others precise.

    Raises:
        InputError: the spectral radius is 1 or more, so that the sum of all powers is infinite.
    """
    result = np.array(matrix, dtype=np.float64)
    if not kernels.star(result):
        raise InputError(f"the {what} of this grammar does not converge: some symbols rewrite to themselves forever")
    return result


def solve(matrix: csr_matrix[np.float64], right: FloatArray) -> FloatArray:
    """Return ``(I - matrix)^-1 right`` of a sparse non-negative matrix (n, n) whose sum of powers is finite, (n,).

    Elimination without pivots, as in `closure`, preserves the digits of small entries. It fills in large matrices of
    random automata, so these are first multiplied by their powers; the sum increases, and mostly soon converges.

    Raises:
        InputError: a cycle has probability 1, or within rounding of it.
    """
    if len(right) > LARGE:
        if len(right) > ORDERED and (solution := _solved_in_order(matrix, right)) is not None:
            return solution
        result = right
        for _ in range(POWERS):
            last, result = result, right + matrix @ result
            if np.array_equal(result, last):
                return np.asarray(result)
    system = (identity(len(right), format="csr") - matrix).tocsc()
    try:
        factors = linalg.splu(
            system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
    except RuntimeError as error:
        raise _never_left() from error
    return np.asarray(factors.solve(right))


def _solved_in_order(matrix: csr_matrix[np.float64], right: FloatArray) -> FloatArray | None:
    """Compute `solve` if the only cycles are self-loops; return None otherwise.

    In topological order the system is triangular, so elimination has no fill-in.

    Raises:
        InputError: as `solve`.
    """
    n, component = connected_components(matrix, connection="strong")
    if n < len(right):
        return None
    order = np.argsort(component)
    system = (identity(n, format="csr") - matrix[order][:, order]).tocsr()
    if (system.diagonal() <= 0.0).any():
        raise _never_left()
    for triangle, lower in ((tril(system, -1), False), (triu(system, 1), True)):
        if triangle.nnz == 0:
            result = np.empty(n)
            result[order] = linalg.spsolve_triangular(system, right[order], lower=lower)
            return result
    return None


def _never_left() -> InputError:
    return InputError("a cycle of this grammar has probability 1 in float64; make leaving it more probable")


def certainly_decays(matrix: csr_matrix[np.float64]) -> bool:
    """Return True if some x > matrix x proves that the spectral radius of a non-negative (S, S) matrix is below 1.

    Such an x exists exactly if the radius is below 1 (Berman & Plemmons 1994, chapter 6); one linear system gives it,
    much faster than eigenvalues. False if the radius is 1 or more, or too near to 1 to decide.
    """
    with np.errstate(all="ignore"):
        try:
            x = solve(matrix, np.ones(matrix.shape[0]))
        except InputError:  # the system is singular
            return False
        return bool((x > 0.0).all() and (x - matrix @ x > 0.5).all())


def perron(matrix: FloatArray | csr_matrix[np.float64]) -> tuple[float, FloatArray, FloatArray]:
    """Return the spectral radius of a non-negative (S, S) matrix with its left and right eigenvectors, each (S,).

    The radius is the largest of any strongly connected component; the vectors belong to that component, positive on its
    states and zero elsewhere.
    """
    rows = csr_matrix(matrix)
    n = rows.shape[0]
    _, component = connected_components(rows, connection="strong")
    order = np.argsort(component, kind="stable")
    first = np.flatnonzero(np.diff(component[order], prepend=-1))
    sizes = np.diff(first, append=n)
    alone = order[first[sizes == 1]]  # their radius is on the diagonal; there may be 100,000 of them
    diagonal = rows.diagonal()[alone]
    largest, vectors = -1.0, np.zeros((2, n))
    if len(alone):
        largest = float(diagonal.max())
        vectors[:, alone[diagonal.argmax()]] = 1.0
    for start, size in zip(first[sizes > 1], sizes[sizes > 1], strict=True):
        states = order[start : start + size]
        radius, *pair = _perron_irreducible(rows[states][:, states])
        if radius > largest:
            largest, vectors = radius, np.zeros((2, n))
            vectors[:, states] = pair
    return largest, vectors[0], vectors[1]


def _perron_irreducible(matrix: csr_matrix[np.float64]) -> tuple[float, FloatArray, FloatArray]:
    n = matrix.shape[0]
    if n == 1:
        return float(matrix[0, 0]), np.ones(1), np.ones(1)
    if n <= 400:
        return _perron_dense(matrix.toarray())
    vectors = []
    radius = 0.0
    for m in (matrix.T, matrix):
        try:
            values, result = linalg.eigs(m, k=1, which="LM", v0=np.ones(n))
        except linalg.ArpackNoConvergence:
            return _perron_dense(matrix.toarray())
        radius = float(np.abs(values[0]))
        vectors.append(np.abs(result[:, 0]))
    return radius, vectors[0], vectors[1]


def _perron_dense(matrix: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    values, right = np.linalg.eig(matrix)
    left_values, left = np.linalg.eig(matrix.T)
    i, j = int(np.argmax(np.abs(values))), int(np.argmax(np.abs(left_values)))
    return float(np.abs(values[i])), np.abs(left[:, j]), np.abs(right[:, i])
