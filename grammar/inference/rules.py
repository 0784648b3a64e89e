"""The rules of one grammar, regrouped for the kernels, its matrices, their closures, and masses of lengths."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from truesource.grammar._kernels.rules import ChildRules, LexicalRules, PairRules, RuleGroups, SparseRows
from truesource.grammar.inference._kernels import counts as kernels
from truesource.grammar.inference.nonnegative_matrices import closure
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.grammar.support.room import require_memory

MOST_STEPS = 2 * 10**10  #: largest number of additions of a table of lengths
QUICK_STEPS = 10**9  #: additions that take a few seconds
_SHORTER = "choose a range of shorter lengths"


def _group_heads(keys: Int32Array) -> Int32Array:
    """Return the start of each group among sorted rows of keys (R, 2), then R."""
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
    start = np.searchsorted(pcfg.lexical[:, 1], np.arange(len(pcfg.vocabulary) + 1)).astype(np.int32)
    return LexicalRules(start, pcfg.lexical[:, 0].copy(), np.exp(pcfg.lexical_logp))


def sparse_rows(dense: FloatArray) -> SparseRows:
    """Return the nonzero entries of a dense matrix, by rows."""
    matrix = sparse.csr_matrix(dense)
    return SparseRows(matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data.astype(np.float64))


def lexical_matrix(pcfg: GrammarRules) -> sparse.csr_matrix[np.float64]:
    """Return P(word | symbol) as a sparse (S, V) matrix."""
    shape = (len(pcfg.symbols), len(pcfg.vocabulary))
    return sparse.csr_matrix((np.exp(pcfg.lexical_logp), (pcfg.lexical[:, 0], pcfg.lexical[:, 1])), shape=shape)


def unary_matrix(pcfg: GrammarRules) -> FloatArray:
    """Return P(A -> B) as a dense (S, S) matrix."""
    dense = np.zeros((len(pcfg.symbols),) * 2)
    np.add.at(dense, (pcfg.unary[:, 0], pcfg.unary[:, 1]), np.exp(pcfg.unary_logp))
    return dense


def left_corner_matrix(pcfg: GrammarRules, right_mass: FloatArray) -> FloatArray:
    """Return ``P_L[A, B] = P(A -> B) + sum_C P(A -> B C) mass(C)``, dense (S, S) (Stolcke 1995)."""
    dense = unary_matrix(pcfg)
    a, b, c = pcfg.binary.T
    np.add.at(dense, (a, b), np.exp(pcfg.binary_logp) * right_mass[c])
    return dense


def mean_matrix(pcfg: GrammarRules, mass: FloatArray) -> FloatArray:
    """Return ``M[A, B]``: expected number of B children of A, other children weighted by ``mass``, dense (S, S).

    With ``mass`` all ones this is the mean matrix; at the total masses it is the Jacobian of their equations.
    """
    dense = left_corner_matrix(pcfg, mass)
    a, b, c = pcfg.binary.T
    np.add.at(dense, (a, c), np.exp(pcfg.binary_logp) * mass[b])
    return dense


def mean_rows(pcfg: GrammarRules) -> sparse.csr_matrix[np.float64]:
    """Return the mean matrix, `mean_matrix` with ``mass`` all ones, sparse (S, S)."""
    size = len(pcfg.symbols)
    a, b, c = pcfg.binary.T
    above, below = pcfg.unary.T
    p = np.exp(pcfg.binary_logp)
    weight = np.concatenate([np.exp(pcfg.unary_logp), p, p])
    at = np.concatenate([above, a, a]), np.concatenate([below, b, c])
    return sparse.csr_matrix((weight, at), shape=(size, size))


def unary_closure(pcfg: GrammarRules, mass: FloatArray) -> FloatArray:
    """Return ``U = (I - Un)^-1``: ``U[A, B]`` is the weight of all unary chains from A to B, (S, S).

    Steps to a symbol without a finite derivation (``mass`` zero) are excluded: they add nothing to any sentence, and
    may have cycles of weight 1.
    """
    _require_square(pcfg, "unary closure")
    return closure(np.where(mass > 0.0, unary_matrix(pcfg), 0.0), "unary closure")


def left_corner_closure(pcfg: GrammarRules, mass: FloatArray) -> FloatArray:
    """Return ``E = (I - P_L)^-1``: ``E[A, B]`` is the weight of B starting where A starts, (S, S) (Stolcke 1995).

    Steps to a symbol without a finite derivation are excluded, as in `unary_closure`.
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


def require_table(rows: int, high: int) -> None:
    """Refuse a table of rows by lengths up to ``high`` before it is allocated.

    Raises:
        NoRoomError: it does not fit the memory.
    """
    require_memory(f"a table of {rows:,} rows and {high:,} lengths", 16.0 * rows * high, _SHORTER)


def length_masses(high: int, pairs: PairRules, lexical_sums: FloatArray, unary_closure: FloatArray) -> FloatArray:
    """Return ``P(A yields exactly m tokens)`` for every symbol and m up to ``high``, (high+1, S); row 0 is zero.

    Dynamic programme over m in O(P high^2 + R high) for P child pairs and R binary rules.

    Args:
        high: most tokens.
        pairs: binary rules by child pair.
        lexical_sums: P(symbol rewrites to a word), (S,).
        unary_closure: (S, S).

    Raises:
        InputError: it does not fit the memory, or takes more than `MOST_STEPS` steps (code ``too-large``).
    """
    require_table(len(lexical_sums), high)
    if len(pairs.left) * high**2 > 2 * MOST_STEPS:
        quick, longest = _longest(QUICK_STEPS, pairs), _longest(MOST_STEPS, pairs)
        raise InputError(
            f"lengths up to {high:,} tokens take {len(pairs.left) * high**2 // 2:.1e} additions with the"
            f" {len(pairs.left):,} child pairs of this grammar, more than {MOST_STEPS:.0e}; choose lengths up to"
            f" {quick:,}, which take seconds, or up to {longest:,}, which take about a minute",
            code="too-large",
        )
    with meter(f"probabilities of lengths up to {high:,}"):
        return np.asarray(kernels.length_masses(high, lexical_sums, pairs, unary_closure))


def _longest(steps: int, pairs: PairRules) -> int:
    """Return the greatest length whose table takes at most a given number of additions."""
    return math.isqrt(2 * steps // len(pairs.left))


def extent(masses: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the first and last nonzero index of each row of ``masses`` (R, N), (R,) each; N and 0 if all are zero."""
    some = masses > 0.0
    result = some.any(axis=1)
    last = masses.shape[1] - 1 - some[:, ::-1].argmax(axis=1)
    return np.where(result, some.argmax(axis=1), masses.shape[1]), np.where(result, last, 0)


def beginnings(pcfg: GrammarRules, number: int, n_words: int) -> list[Int32Array]:
    """Return the first words of sampled texts, at most ``n_words`` of each; fewer if a derivation has long cycles."""
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
            threshold = rng.uniform(total[low], total[high])
            rule = order[min(low + np.searchsorted(total[low + 1 : high], threshold, "right"), high - 1)]
            if rule < n_binary:
                stack += pcfg.binary[rule, :0:-1].tolist()
            elif rule < n_binary + n_unary:
                stack.append(int(pcfg.unary[rule - n_binary, 1]))
            else:
                words.append(int(pcfg.lexical[rule - n_binary - n_unary, 1]))
        texts.append(np.array(words, dtype=np.int32))
    return texts
