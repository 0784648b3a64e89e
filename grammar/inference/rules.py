"""The rules of one grammar, regrouped for the kernels, and what is computed of them once: mass, closures, lengths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csr_matrix, identity, linalg, tril, triu
from scipy.sparse.csgraph import breadth_first_order, connected_components

from truesource.grammar._kernels.rules import ChildRules, LexicalRules, PairRules, RuleGroups, SparseRows
from truesource.grammar.inference._kernels import counts as kernels
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.grammar.support.room import require_memory

MOST_STEPS = 2 * 10**10  #: sums of a table of lengths
QUICK_STEPS = 10**9  #: of these, so many that they take a few seconds
_SHORTER = "ask for a range of shorter lengths"
CRITICAL = 1e-9  #: nearer to 1, the spectral radius leaves total masses and expected counts with half their digits
LARGE = 1000  #: rows of a matrix from which on `solve` adds up powers
ORDERED = 10_000  #: rows from which on it first looks for an order of elimination
POWERS = 5000  #: how many of them it adds before it gives up


def _group_heads(keys: Int32Array) -> Int32Array:
    """Where a new group begins among sorted rows of keys (R, 2), and R itself at the end."""
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return np.append(np.flatnonzero(new), len(keys)).astype(np.int32)


def pair_rules(pcfg: GrammarRules) -> PairRules:
    """Group the binary rules (already sorted by left, right, parent)."""
    children = pcfg.binary[:, 1:]
    heads = _group_heads(children)
    left, right = (children[heads[:-1], side].copy() for side in (0, 1))
    return PairRules(
        left,
        right,
        np.searchsorted(left, np.arange(len(pcfg.symbols) + 1)).astype(np.int32),
        heads,
        pcfg.binary[:, 0].copy(),
        np.exp(pcfg.binary_logp),
    )


def rule_groups(pcfg: GrammarRules, first: int, second: int) -> RuleGroups:
    """Group the binary rules by two of their symbols: 0 is the parent, 1 the left, 2 the right child."""
    third = 3 - first - second
    order = np.lexsort(pcfg.binary[:, (third, second, first)].T)
    rules = pcfg.binary[order]
    heads = _group_heads(rules[:, (first, second)])
    starts = np.searchsorted(rules[heads[:-1], first], np.arange(len(pcfg.symbols) + 1)).astype(np.int32)
    seconds, thirds = np.ascontiguousarray(rules[heads[:-1], second]), np.ascontiguousarray(rules[:, third])
    return RuleGroups(starts, seconds, heads, thirds, np.exp(pcfg.binary_logp[order]))


def child_rules(rules: Int32Array, weight: FloatArray, n_states: int) -> ChildRules:
    """Group rules (rules, 1 + children) by parent, their weights (rules,) as ``prob``."""
    order = np.argsort(rules[:, 0], kind="stable")
    start = np.searchsorted(rules[order, 0], np.arange(n_states + 1)).astype(np.int32)
    return ChildRules(start, np.ascontiguousarray(rules[order, 1:].T), np.ascontiguousarray(weight[order]))


def lexical_rules(pcfg: GrammarRules) -> LexicalRules:
    """Group the lexical rules (already sorted by word, parent)."""
    start = np.searchsorted(pcfg.lexical[:, 1], np.arange(len(pcfg.terminals) + 1)).astype(np.int32)
    return LexicalRules(start, pcfg.lexical[:, 0].copy(), np.exp(pcfg.lexical_logp))


def sparse_rows(dense: FloatArray) -> SparseRows:
    """The non-zero entries of a dense matrix, by rows."""
    matrix = sparse.csr_matrix(dense)
    return SparseRows(matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data.astype(np.float64))


def lexical_matrix(pcfg: GrammarRules) -> sparse.csr_matrix[np.float64]:
    """P(word | symbol) as a sparse (S, V) matrix."""
    shape = (len(pcfg.symbols), len(pcfg.terminals))
    return sparse.csr_matrix((np.exp(pcfg.lexical_logp), (pcfg.lexical[:, 0], pcfg.lexical[:, 1])), shape=shape)


def unary_matrix(pcfg: GrammarRules) -> FloatArray:
    """P(A -> B) as a dense (S, S) matrix."""
    dense = np.zeros((len(pcfg.symbols),) * 2)
    np.add.at(dense, (pcfg.unary[:, 0], pcfg.unary[:, 1]), np.exp(pcfg.unary_logp))
    return dense


def left_corner_matrix(pcfg: GrammarRules, right_mass: FloatArray) -> FloatArray:
    """``P_L[A, B] = P(A -> B) + sum_C P(A -> B C) mass(C)``, dense (S, S) (Stolcke 1995)."""
    dense = unary_matrix(pcfg)
    a, b, c = pcfg.binary.T
    np.add.at(dense, (a, b), np.exp(pcfg.binary_logp) * right_mass[c])
    return dense


def mean_matrix(pcfg: GrammarRules, mass: FloatArray) -> FloatArray:
    """``M[A, B]``: expected number of B children of A, other children weighted by ``mass``, dense (S, S).

    With ``mass`` all ones this is the mean matrix; at the total masses it is the Jacobian of their equations.
    """
    dense = left_corner_matrix(pcfg, mass)
    a, b, c = pcfg.binary.T
    np.add.at(dense, (a, c), np.exp(pcfg.binary_logp) * mass[b])
    return dense


def mean_rows(pcfg: GrammarRules) -> sparse.csr_matrix[np.float64]:
    """The mean matrix, `mean_matrix` with ``mass`` all ones, sparse (S, S)."""
    size = len(pcfg.symbols)
    a, b, c = pcfg.binary.T
    above, below = pcfg.unary.T
    p = np.exp(pcfg.binary_logp)
    weight = np.concatenate([np.exp(pcfg.unary_logp), p, p])
    at = np.concatenate([above, a, a]), np.concatenate([below, b, c])
    return sparse.csr_matrix((weight, at), shape=(size, size))


def reachable_from(graph: FloatArray | csr_matrix[Any], state: int) -> BoolArray:
    """Which states follow from ``state`` along positive entries of an (S, S) matrix, itself included, (S,)."""
    edges = graph if isinstance(graph, csr_matrix) else csr_matrix((graph > 0.0).astype(np.int8))
    result = np.zeros(edges.shape[0], dtype=bool)
    result[breadth_first_order(edges, state, return_predecessors=False)] = True
    return result


def reachable(graph: FloatArray) -> BoolArray:
    """Which state reaches which along positive entries of an (S, S) matrix, itself included, (S, S)."""
    edges = csr_matrix((graph > 0.0).astype(np.int8))
    return np.stack([reachable_from(edges, state) for state in range(len(graph))])


def closure(matrix: FloatArray, what: str) -> FloatArray:
    """``(I - matrix)^-1`` of a non-negative matrix; entries without a path are exactly zero, all others precise.

    Raises:
        InputError: the spectral radius is 1 or more, so that the sum of all powers is infinite.
    """
    result = np.array(matrix, dtype=np.float64)
    if not kernels.star(result):
        raise InputError(f"the {what} of this grammar does not converge: some symbols rewrite to themselves for ever")
    return result


def unary_closure(pcfg: GrammarRules, mass: FloatArray) -> FloatArray:
    """``U = (I - Un)^-1``: ``U[A, B]`` is the weight of all unary chains from A to B, (S, S).

    Steps to a symbol without a finite derivation (``mass`` zero) are left out: they add nothing to any
    sentence, and may go round for ever.
    """
    _require_square(pcfg, "unary closure")
    return closure(np.where(mass > 0.0, unary_matrix(pcfg), 0.0), "unary closure")


def left_corner_closure(pcfg: GrammarRules, mass: FloatArray) -> FloatArray:
    """``E = (I - P_L)^-1``: ``E[A, B]`` is the weight of B starting where A starts, (S, S) (Stolcke 1995).

    Steps to a symbol without a finite derivation are left out, as in `unary_closure`.
    """
    _require_square(pcfg, "left-corner closure")
    return closure(np.where(mass > 0.0, left_corner_matrix(pcfg, mass), 0.0), "left-corner closure")


def _require_square(pcfg: GrammarRules, what: str) -> None:
    """Refuse a matrix of all pairs of symbols before it is allocated.

    Raises:
        NoRoomError: it does not fit the memory.
    """
    n = len(pcfg.symbols)
    require_memory(f"the {what} of {n:,} symbols", 16.0 * n * n, "use a smaller grammar")


def solve(matrix: csr_matrix[np.float64], right: FloatArray) -> FloatArray:
    """``(I - matrix)^-1 right`` for a sparse non-negative matrix (n, n) whose powers sum to a finite one, (n,).

    Elimination without pivots, as in `closure`, so that small entries keep their digits. It fills large matrices of
    random automata, so these are first multiplied by their powers; the sum only grows, and mostly soon comes to rest.

    Raises:
        InputError: a loop has probability 1, or within rounding of it.
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
    """`solve`, if no states but single ones lead back to themselves; None otherwise.

    In the order of what leads to what the system is triangular, so that elimination fills nothing.

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
    return InputError("a loop of this grammar is never left, to float64; make leaving it more probable")


def certainly_decays(matrix: csr_matrix[np.float64]) -> bool:
    """Say whether some x > 0 shows that the spectral radius of a non-negative (S, S) matrix is below 1: x > matrix x.

    Such an x exists exactly where the radius is below 1 (Berman & Plemmons 1994, chapter 6); one linear system finds
    it, much faster than eigenvalues do. False where the radius is 1 or more, or too near to 1 to say.
    """
    with np.errstate(all="ignore"):
        try:
            x = solve(matrix, np.ones(matrix.shape[0]))
        except InputError:  # the system is singular
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


def require_table(rows: int, high: int) -> None:
    """Refuse a table of rows by lengths up to ``high`` before it is allocated.

    Raises:
        NoRoomError: it does not fit the memory.
    """
    require_memory(f"a table of {rows:,} rows and {high:,} lengths", 16.0 * rows * high, _SHORTER)


def length_masses(high: int, pairs: PairRules, lexical_sums: FloatArray, unary_closure: FloatArray) -> FloatArray:
    """``P(A yields exactly m tokens)`` for every symbol and m up to ``high``, (high+1, S); row 0 is zero.

    Dynamic programme over m in O(P high^2 + R high) for P child pairs and R binary rules.

    Args:
        high: most tokens.
        pairs: binary rules by child pair.
        lexical_sums: P(symbol is a preterminal of some word), (S,).
        unary_closure: (S, S).

    Raises:
        InputError: it does not fit the memory, or takes more than `MOST_STEPS` steps (code ``too-large``).
    """
    require_table(len(lexical_sums), high)
    if len(pairs.left) * high**2 > 2 * MOST_STEPS:
        quick, longest = _longest(QUICK_STEPS, pairs), _longest(MOST_STEPS, pairs)
        raise InputError(
            f"lengths up to {high:,} tokens take {len(pairs.left) * high**2 // 2:.1e} steps with the"
            f" {len(pairs.left):,} pairs of symbols of this grammar, more than {MOST_STEPS:.0e}; ask for lengths up to"
            f" {quick:,}, which take seconds, or up to {longest:,}, which take about a minute",
            code="too-large",
        )
    with meter(f"probabilities of lengths up to {high:,}"):
        return np.asarray(kernels.length_masses(high, lexical_sums, pairs, unary_closure))


def _longest(steps: int, pairs: PairRules) -> int:
    """Return the greatest length whose table takes no more than some steps."""
    return math.isqrt(2 * steps // len(pairs.left))


def extent(masses: FloatArray) -> tuple[IntArray, IntArray]:
    """First and last place of each row of ``masses`` (R, N) that is not zero, (R,) each; N and 0 where all are zero."""
    some = masses > 0.0
    result = some.any(axis=1)
    last = masses.shape[1] - 1 - some[:, ::-1].argmax(axis=1)
    return np.where(result, some.argmax(axis=1), masses.shape[1]), np.where(result, last, 0)


def beginnings(pcfg: GrammarRules, number: int, n_words: int) -> list[Int32Array]:
    """The first words of drawn texts, at most ``n_words`` of each; fewer where a derivation goes round for long."""
    rng = np.random.default_rng(0)
    parent = np.concatenate([rules[:, 0] for rules, _ in pcfg.tables()])
    order = np.argsort(parent, kind="stable")
    ends = np.searchsorted(parent[order], np.arange(len(pcfg.symbols) + 1))
    total = np.concatenate([[0.0], np.cumsum(np.exp(np.concatenate([logp for _, logp in pcfg.tables()]))[order])])
    n_binary, n_unary = len(pcfg.binary), len(pcfg.unary)
    texts = []
    for _ in range(number):
        words: list[int] = []
        stack = [pcfg.start]
        for _ in range(100 * n_words):
            if not stack or len(words) == n_words:
                break
            low, high = ends[stack[-1] : stack.pop() + 2]
            drawn = rng.uniform(total[low], total[high])
            rule = order[min(low + np.searchsorted(total[low + 1 : high], drawn, "right"), high - 1)]
            if rule < n_binary:
                stack += pcfg.binary[rule, :0:-1].tolist()
            elif rule < n_binary + n_unary:
                stack.append(int(pcfg.unary[rule - n_binary, 1]))
            else:
                words.append(int(pcfg.lexical[rule - n_binary - n_unary, 1]))
        texts.append(np.array(words, dtype=np.int32))
    return texts
