"""Rules regrouped for the kernels: binary rules by child pair, lexical rules by word."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from truesource.grammar._kernels.rules import ChildRules, LexicalRules, PairRules, RuleGroups, SparseRows
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray, Int32Array


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
