"""Expected number of pairs of preterminal positions in one sentence: neighbours, or any two in order.

Every such pair is split by exactly one binary node ``A -> B C``, so that the expectation is
``sum N(A) P(A -> B C) X(B, T) Y(C, T')``: for neighbours X is the weight of T as the last preterminal of B and Y that
of T' as the first of C; for any two, X and Y are expected numbers. Given a range of lengths all are series in length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.closure import closure
from truesource.grammar.inference.expected import outside_masses, range_table
from truesource.grammar.inference.rules import left_corner_matrix, mean_matrix
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

Kind = Literal["first", "last", "any"]


@dataclass(frozen=True, eq=False)
class PairWeights:
    """Expected pairs of preterminals, (T, T'), of one kind, and what the start symbol begins and ends with."""

    tags: IntArray  #: (T,) the symbols that have words
    weight: FloatArray  #: (T, T) expected number of pairs: left one by row, right one by column
    first: FloatArray  #: (T,) neighbours: weight of each as the first of the sentence; any two: expected number
    last: FloatArray  #: (T,) likewise the last


def pair_weights(pcfg: PCFG, lengths: LengthRange | None, *, neighbours: bool) -> PairWeights:
    """Expected number of each ordered pair of preterminals, next to each other or anywhere in a sentence.

    Without ``lengths``: three matrix products. With a range up to N: about ``1.5 N^2`` products of (S, S) matrices,
    all terms positive.

    Raises:
        InputError: without ``lengths``, the spectral radius is 1 or more; with them, no sentence has such a length.
    """
    tags = np.flatnonzero(pcfg.exact.lexical_sums > 0.0)
    kinds: tuple[Kind, Kind] = ("last", "first") if neighbours else ("any", "any")
    if lengths is None:
        return _unconditioned(pcfg, tags, kinds)
    return _conditioned(pcfg, tags, kinds, lengths)


def _unconditioned(pcfg: PCFG, tags: IntArray, kinds: tuple[Kind, Kind]) -> PairWeights:
    exact = pcfg.exact
    symbols = exact.expected_symbols
    inner = exact.reached & (exact.mass > 0.0)
    places = np.flatnonzero(inner)
    ends = []
    for kind in kinds:
        step = {"first": left_corner_matrix, "last": _right_corner_matrix, "any": mean_matrix}[kind](pcfg, exact.mass)
        full = np.zeros_like(step)
        full[np.ix_(places, places)] = closure(step[np.ix_(places, places)], f"closure of {kind} children")
        ends.append(full[:, tags])
    a, b, c = pcfg.binary.T
    n = len(pcfg.symbols)
    uses = csr_matrix((symbols[a] * np.exp(pcfg.binary_logp), (b, c)), shape=(n, n))
    left, right = ends
    return PairWeights(tags, left.T @ (uses @ right), right[pcfg.start], left[pcfg.start])


def _right_corner_matrix(pcfg: PCFG, left_mass: FloatArray) -> FloatArray:
    """``P(A -> C) + sum_B P(A -> B C) mass(B)``, dense (S, S)."""
    ones = mean_matrix(pcfg, left_mass) - left_corner_matrix(pcfg, left_mass)
    dense = np.maximum(ones, 0.0)
    np.add.at(dense, (pcfg.unary[:, 0], pcfg.unary[:, 1]), np.exp(pcfg.unary_logp))
    return dense


def _conditioned(pcfg: PCFG, tags: IntArray, kinds: tuple[Kind, Kind], lengths: LengthRange) -> PairWeights:
    table, z = range_table(pcfg, lengths)
    outside, _ = outside_masses(pcfg, table, lengths, z)
    n = len(pcfg.symbols)
    grown = np.zeros(n, dtype=bool)
    grown[pcfg.binary[:, 0]] = True
    grown[pcfg.unary[:, 0]] = True
    rows = np.flatnonzero(grown)
    masses = table.masses.T
    left = _series(pcfg, masses, rows, tags, kinds[0])
    right = left if kinds[0] == kinds[1] else _series(pcfg, masses, rows, tags, kinds[1])

    pairs = pcfg.exact.pairs
    of_pair = np.repeat(np.arange(len(pairs.left)), np.diff(pairs.rule_start))
    by_pair = csr_matrix((pairs.prob, (of_pair, pairs.parent)), shape=(len(pairs.left), n))
    after = [np.zeros((n if k == 1 else len(rows), len(tags))) for k in range(1, lengths.high)]
    for m in range(2, lengths.high + 1):
        uses = np.zeros((n, n))
        uses[pairs.left, pairs.right] = by_pair @ outside[m]
        sides = {(whole, True): uses[:, rows] if whole else uses[np.ix_(rows, rows)] for whole in (True, False)}
        sides |= {(whole, False): uses if whole else uses[rows] for whole in (True, False)}
        for k in range(1, m):
            after[k - 1] += sides[k == 1, m - k > 1] @ right[m - k - 1]
    weight = np.zeros((len(tags), len(tags)))
    for k in range(1, lengths.high):
        weight += left[k - 1].T @ after[k - 1]
    return PairWeights(
        tags,
        weight,
        _at_start(right, rows, pcfg.start, lengths) / z,
        _at_start(left, rows, pcfg.start, lengths) / z,
    )


def _series(pcfg: PCFG, masses: FloatArray, rows: IntArray, tags: IntArray, kind: Kind) -> list[FloatArray]:
    """Weight of preterminal T in yields of m tokens, m = 1..N: (S, T) for m = 1, then (rows, T), zero elsewhere.

    ``X_1 = U``, ``X_m = U sum_k step_{m-k} X_k`` where ``step_d(A, B)`` is the probability of a child B on the side
    asked for and d tokens beside it.
    """
    n, high = len(pcfg.symbols), len(masses) - 1
    local = np.full(n, -1)
    local[rows] = np.arange(len(rows))
    a, b, c = pcfg.binary.T.astype(np.int64)
    p = np.exp(pcfg.binary_logp)
    steps = np.zeros((len(rows) * n, high))
    for wanted, child, sibling in (("first", b, c), ("last", c, b)):
        if kind in (wanted, "any"):
            beside = csr_matrix((p, (local[a] * n + child, sibling)), shape=(len(rows) * n, n))
            steps += beside @ masses[:high].T
    step = np.ascontiguousarray(steps.T).reshape(high, len(rows), n)
    closed = pcfg.exact.unary_closure
    found = [np.ascontiguousarray(closed[:, tags])]
    inner = np.ascontiguousarray(step[:, :, rows])
    chains = closed[np.ix_(rows, rows)]
    for m in range(2, high + 1):
        bare = step[m - 1] @ found[0]
        for k in range(2, m):
            bare += inner[m - k] @ found[k - 1]
        found.append(chains @ bare)
    return found


def _at_start(series: list[FloatArray], rows: IntArray, start: int, lengths: LengthRange) -> FloatArray:
    """Sum of a series over the range, at the start symbol, (T,)."""
    place = np.flatnonzero(rows == start)
    total = series[0][start].copy() if lengths.low == 1 else np.zeros(series[0].shape[1])
    for m in range(max(lengths.low, 2), lengths.high + 1):
        total += series[m - 1][place].sum(axis=0)
    return total


def emission_of(pcfg: PCFG, tags: IntArray) -> csr_matrix[np.float64]:
    """P(word | preterminal), sparse (T, V).

    Raises:
        InputError: the grammar has no words.
    """
    if not len(tags):
        raise InputError("this grammar has no words; give it lexical rules")
    return pcfg.exact.emission[tags]
