"""Weights of symbols on the spines around a string: the sums over all lengths, and series by length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar._kernels.rules import SparseRows
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference._kernels import counts as kernels
from truesource.grammar.inference.expected import outside_masses, range_table
from truesource.grammar.inference.nonnegative_matrices import CRITICAL, certainly_decays, closure, solve
from truesource.grammar.inference.rules import mean_matrix, sparse_rows, unary_matrix
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError

ANY = -1  #: represents every word in a string


class SpineWeights(NamedTuple):
    """A weight of every symbol for each of W strings, by tokens outside."""

    value: FloatArray  #: (L, S, W)
    present: BoolArray  #: (L, S) which are nonzero for some string

    @classmethod
    def zeros(cls, length: int, n: int, width: int) -> SpineWeights:
        """Return weights that are all zero."""
        return cls(np.zeros((length, n, width)), np.zeros((length, n), dtype=np.bool_))


@dataclass(frozen=True, eq=False)
class NextWeights:
    """Distributions after W strings, as expected numbers in one sentence, up to a factor of each string."""

    states: FloatArray  #: (S, W) symbols over one word, right after the string
    end: FloatArray  #: (W,) expected number of sentences that end with the string
    log_scale: FloatArray | float = 0.0  #: (W,) ln of the factor: rare strings underflow float64


class FreeSpine:
    """Sums over all lengths: one number of each symbol."""

    def __init__(self, pcfg: PCFG) -> None:
        exact = pcfg.exact
        n, mass = len(pcfg.symbols), exact.mass
        useful = mass > 0.0
        a, b, c = pcfg.binary.T
        p = np.exp(pcfg.binary_logp)
        right = unary_matrix(pcfg)
        np.add.at(right, (a, c), p * mass[b])
        inner = np.flatnonzero(exact.reached & useful)
        mean = csr_matrix(mean_matrix(pcfg, mass)[np.ix_(inner, inner)])
        if abs(exact.spectral_radius - 1.0) < CRITICAL or not certainly_decays(mean):
            raise InputError("the spectral radius is 1: expected counts are infinite; give a range of lengths")
        outside = np.zeros(n)
        outside[inner] = solve(mean.T.tocsr(), (inner == pcfg.start).astype(np.float64)) / exact.total_mass
        self._uses = csr_matrix((outside[a] * p, (c, b)), shape=(n, n))
        self._below = closure(np.where(useful, right, 0.0), "right-corner closure")
        self._beside = np.ascontiguousarray(exact.left_corner_closure.T)
        self._start, self._total = pcfg.start, exact.total_mass
        self.over_words = np.where(exact.lexical_sums > 0.0, outside, 0.0)  #: (S,) expected number over a word

    def numbers(self, _words: int) -> int:
        """Return 1, as the sums are over all numbers of tokens outside the string."""
        return 1

    def below(self, x: SpineWeights) -> SpineWeights:
        """Return all symbols that end where the symbols of ``x`` end."""
        return self._dense(self._below, x)

    def beside(self, x: SpineWeights) -> SpineWeights:
        """Return all symbols that begin where the symbols of ``x`` begin."""
        return self._dense(self._beside, x)

    def across(self, x: SpineWeights, out: SpineWeights) -> None:
        """Add the right children of all nodes whose left children end with the string."""
        out.value[0] += self._uses @ x.value[0]
        out.present[0] = (out.value[0] > 0.0).any(axis=1)

    def following(self, ends: SpineWeights, begins: SpineWeights, _words: int) -> NextWeights:
        """Return the weights of the continuations."""
        return NextWeights(begins.value[0], ends.value[0, self._start] / self._total)

    @staticmethod
    def _dense(matrix: FloatArray, x: SpineWeights) -> SpineWeights:
        value = (matrix @ x.value[0])[None]
        return SpineWeights(value, (value > 0.0).any(axis=2))


class RangedSpine:
    """Sums over a range of lengths.

    Weights of ends are by tokens before the string; weights of beginnings by ``high`` less the tokens of the string and
    of the symbol, so that both run from 0 and every sum is over fewer tokens.
    """

    def __init__(self, pcfg: PCFG, lengths: LengthRange) -> None:
        exact = pcfg.exact
        table, self._z = range_table(pcfg, lengths)
        outside, _ = outside_masses(pcfg, table, lengths, self._z)
        self._lengths, self._start = lengths, pcfg.start
        a, b, c = pcfg.binary.T.astype(np.int64)
        p = np.exp(pcfg.binary_logp)[:, None]
        masses, n = table.masses[:, : lengths.high], len(pcfg.symbols)
        outside = np.where(table.masses.T > 0.0, outside, 0.0)
        self.over_words = np.where(exact.lexical_sums > 0.0, outside[1], 0.0)  #: (S,) as without lengths
        self._ending = _series(n, a, c, p * masses[b])
        self._beginning = exact.owed_corners(lengths.high)
        self._uses = _series(n, c, b, p * outside[::-1, a].T)
        self._down, self._up = sparse_rows(exact.unary_closure), sparse_rows(exact.unary_closure.T)

    def numbers(self, words: int) -> int:
        """Return the number of token counts outside ``words`` tokens, and the number outside the sentence's end."""
        return max(self._lengths.high - words + 1, 1)

    def below(self, x: SpineWeights) -> SpineWeights:
        """Return all symbols that end where the symbols of ``x`` end."""
        kernels.close_series(self._ending, self._down, *x)
        return x

    def beside(self, x: SpineWeights) -> SpineWeights:
        """Return all symbols that begin where the symbols of ``x`` begin."""
        kernels.close_series(self._beginning, self._up, *x)
        return x

    def across(self, x: SpineWeights, out: SpineWeights) -> None:
        """Add the right children of all nodes whose left children end with the string."""
        kernels.spread_series(self._uses, *x, *out)

    def following(self, ends: SpineWeights, begins: SpineWeights, words: int) -> NextWeights:
        """Return the weights of the continuations: symbols of one token; sentences have at most ``high`` tokens."""
        width = ends.value.shape[2]
        before = slice(max(self._lengths.low - words, 0), max(self._lengths.high - words + 1, 0))
        end = ends.value[before, self._start].sum(axis=0) / self._z if before.stop else np.zeros(width)
        one = self._lengths.high - words - 1
        states = begins.value[one] if one >= 0 else np.zeros(begins.value.shape[1:])
        return NextWeights(states, np.asarray(end))


def _series(n: int, row: IntArray, column: IntArray, value: FloatArray) -> SparseRows:
    """Return entries (R, D) of a sparse (S, S) matrix of series by rows, equal indices summed."""
    keys, inverse = np.unique(row * n + column, return_inverse=True)
    total = csr_matrix((np.ones(len(row)), (inverse, np.arange(len(row)))), shape=(len(keys), len(row))) @ value
    start = np.searchsorted(keys // n, np.arange(n + 1)).astype(np.int32)
    return SparseRows(start, (keys % n).astype(np.int32), np.ascontiguousarray(total))
