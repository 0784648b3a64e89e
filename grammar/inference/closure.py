"""Quantities computed once per grammar: total mass, closures, spectral radius, mean length."""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, identity, linalg
from scipy.sparse.csgraph import breadth_first_order, connected_components

from truesource.grammar.inference.rules import left_corner_matrix, lexical_rules, mean_matrix, unary_matrix
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import InputError

LARGE = 1000  #: rows of a matrix from which on `solve` adds up powers
POWERS = 5000  #: how many of them it adds before it gives up


def reachable_from(graph: FloatArray | csr_matrix[Any], state: int) -> BoolArray:
    """Which states follow from ``state`` along positive entries of an (S, S) matrix, itself included, (S,)."""
    edges = graph if isinstance(graph, csr_matrix) else csr_matrix((graph > 0.0).astype(np.int8))
    found = np.zeros(edges.shape[0], dtype=bool)
    found[breadth_first_order(edges, state, return_predecessors=False)] = True
    return found


def reachable(graph: FloatArray) -> BoolArray:
    """Which state reaches which along positive entries of an (S, S) matrix, itself included, (S, S)."""
    edges = csr_matrix((graph > 0.0).astype(np.int8))
    return np.stack([reachable_from(edges, state) for state in range(len(graph))])


def closure(matrix: FloatArray, what: str) -> FloatArray:
    """``(I - matrix)^-1`` of a non-negative matrix; entries without a path are exactly zero, all others precise.

    Raises:
        InputError: the spectral radius is 1 or more, so that the sum of all powers is infinite.
    """
    from truesource.grammar.inference._kernels.closure import star

    found = np.array(matrix, dtype=np.float64)
    if not star(found):
        raise InputError(f"the {what} of this grammar does not converge: some symbols rewrite to themselves for ever")
    return found


def unary_closure(pcfg: GrammarRules, mass: FloatArray) -> FloatArray:
    """``U = (I - Un)^-1``: ``U[A, B]`` is the weight of all unary chains from A to B, (S, S).

    Steps to a symbol without a finite derivation (``mass`` zero) are left out: they add nothing to any
    sentence, and may go round for ever.
    """
    return closure(np.where(mass > 0.0, unary_matrix(pcfg), 0.0), "unary closure")


def left_corner_closure(pcfg: GrammarRules, mass: FloatArray) -> FloatArray:
    """``E = (I - P_L)^-1``: ``E[A, B]`` is the weight of B starting where A starts, (S, S) (Stolcke 1995).

    Steps to a symbol without a finite derivation are left out, as in `unary_closure`.
    """
    return closure(np.where(mass > 0.0, left_corner_matrix(pcfg, mass), 0.0), "left-corner closure")


def total_mass(pcfg: GrammarRules, tolerance: float = 1e-14) -> FloatArray:
    """``t_A = P(A derives some finite string)``, (S,): least fixed point of ``t = lex + Un t + Bi(t, t)``.

    Newton's method from zero, which rises monotonically to the least fixed point (Etessami & Yannakakis
    2009), one strongly connected component after the other so that a critical one does not spoil the rest.
    """
    n = len(pcfg.symbols)
    lexical = np.zeros(n)
    rules = lexical_rules(pcfg)
    np.add.at(lexical, rules.parent, rules.prob)
    a, b, c = pcfg.binary.T
    p = np.exp(pcfg.binary_logp)
    unary_p = np.exp(pcfg.unary_logp)
    graph = mean_matrix(pcfg, np.ones(n))
    n_components, component = connected_components(csr_matrix((graph > 0.0).astype(np.int8)), connection="strong")
    below: dict[int, set[int]] = {k: set() for k in range(n_components)}
    for k, other in np.unique(np.stack([component[place] for place in np.nonzero(graph > 0.0)]), axis=1).T.tolist():
        if k != other:
            below[k].add(other)
    alone = set(np.flatnonzero(np.bincount(component) == 1)) - set(component[graph.diagonal() > 0.0])
    mass = np.zeros(n)
    binary_of, unary_of = component[a], component[pcfg.unary[:, 0]]
    for k in TopologicalSorter(below).static_order():
        states = np.flatnonzero(component == k)
        local = {int(s): i for i, s in enumerate(states)}
        rb, ru = np.flatnonzero(binary_of == k), np.flatnonzero(unary_of == k)
        ra = np.array([local[int(s)] for s in a[rb]], dtype=np.int64)
        ua = np.array([local[int(s)] for s in pcfg.unary[ru, 0]], dtype=np.int64)
        ub = pcfg.unary[ru, 1]
        for _ in range(200):
            value = lexical[states]
            np.add.at(value, ra, p[rb] * mass[b[rb]] * mass[c[rb]])
            np.add.at(value, ua, unary_p[ru] * mass[ub])
            if k in alone:  # its value depends on other components alone
                mass[states] = np.clip(value, 0.0, 1.0)
                break
            jacobian = np.zeros((len(states), n))
            np.add.at(jacobian, (ra, b[rb]), p[rb] * mass[c[rb]])
            np.add.at(jacobian, (ra, c[rb]), p[rb] * mass[b[rb]])
            np.add.at(jacobian, (ua, ub), unary_p[ru])
            gap = value - mass[states]
            try:
                step = np.linalg.solve(np.eye(len(states)) - jacobian[:, states], gap)
            except np.linalg.LinAlgError:
                step = gap
            updated = np.clip(mass[states] + np.maximum(step, 0.0), 0.0, 1.0)
            moved = float(np.abs(updated - mass[states]).max())
            mass[states] = updated
            if moved <= tolerance:
                break
    return mass


def solve(matrix: csr_matrix[np.float64], right: FloatArray) -> FloatArray:
    """``(I - matrix)^-1 right`` for a sparse non-negative matrix (n, n) whose powers sum to a finite one, (n,).

    Elimination without pivots, as in `closure`, so that small entries keep their digits. It fills large matrices of
    random automata, so these are first multiplied by their powers; the sum only grows, and mostly soon comes to rest.
    """
    if len(right) > LARGE:
        found = right
        for _ in range(POWERS):
            last, found = found, right + matrix @ found
            if np.array_equal(found, last):
                return np.asarray(found)
    system = (identity(len(right), format="csr") - matrix).tocsc()
    factors = linalg.splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return np.asarray(factors.solve(right))


def certainly_decays(matrix: csr_matrix[np.float64]) -> bool:
    """Whether some x > 0 shows that the spectral radius of a non-negative (S, S) matrix is below 1: ``x > matrix x``.

    Such an x exists exactly where the radius is below 1 (Berman & Plemmons 1994, chapter 6); one linear system finds
    it, much faster than eigenvalues do. False where the radius is 1 or more, or too near to 1 to say.
    """
    with np.errstate(all="ignore"):
        try:
            x = solve(matrix, np.ones(matrix.shape[0]))
        except RuntimeError:  # the system is singular
            return False
        return bool((x > 0.0).all() and (x - matrix @ x > 0.5).all())


def perron(matrix: FloatArray | csr_matrix[np.float64]) -> tuple[float, FloatArray, FloatArray]:
    """Spectral radius of a non-negative (S, S) matrix with its left and right eigenvectors, each (S,).

    The radius is the largest of any strongly connected component; the vectors are those of that component,
    positive on its states and zero elsewhere.
    """
    rows = csr_matrix(matrix)
    n = rows.shape[0]
    _, component = connected_components(rows, connection="strong")
    order = np.argsort(component, kind="stable")
    first = np.flatnonzero(np.diff(component[order], prepend=-1))
    sizes = np.diff(first, append=n)
    alone = order[first[sizes == 1]]  # whose radius stands on the diagonal; there may be 100,000 of them
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
            values, found = linalg.eigs(m, k=1, which="LM", v0=np.ones(n))
        except linalg.ArpackNoConvergence:
            return _perron_dense(matrix.toarray())
        radius = float(np.abs(values[0]))
        vectors.append(np.abs(found[:, 0]))
    return radius, vectors[0], vectors[1]


def _perron_dense(matrix: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    values, right = np.linalg.eig(matrix)
    left_values, left = np.linalg.eig(matrix.T)
    i, j = int(np.argmax(np.abs(values))), int(np.argmax(np.abs(left_values)))
    return float(np.abs(values[i])), np.abs(left[:, j]), np.abs(right[:, i])
