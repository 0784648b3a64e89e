"""What every exact quantity of a grammar is made of, computed once: rules by child, closures, masses, lengths."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar._kernels.rules import LexicalRules, PairRules, SparseRows
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference import closure
from truesource.grammar.inference.length import length_masses
from truesource.grammar.inference.linear import LinearRules
from truesource.grammar.inference.rules import (
    lexical_matrix,
    lexical_rules,
    mean_rows,
    pair_rules,
)
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import InputError


class GrammarTables:
    """Tables of one grammar. What is computed once is kept."""

    def __init__(self, pcfg: GrammarRules) -> None:
        self.pcfg = pcfg
        self._range_masses: dict[LengthRange, float] = {}

    @cached_property
    def linear(self) -> LinearRules | None:
        """The rules as those of a linear grammar; None where it is not linear."""
        return LinearRules.of(self.pcfg)

    @cached_property
    def pairs(self) -> PairRules:
        """Binary rules by child pair."""
        return pair_rules(self.pcfg)

    @cached_property
    def lexicon(self) -> LexicalRules:
        """Lexical rules by word."""
        return lexical_rules(self.pcfg)

    @cached_property
    def emission(self) -> csr_matrix[np.float64]:
        """P(word | symbol), sparse (S, V)."""
        return lexical_matrix(self.pcfg)

    @cached_property
    def lexical_sums(self) -> FloatArray:
        """Total lexical probability of each symbol, (S,)."""
        return np.asarray(self.emission.sum(axis=1)).ravel()

    @cached_property
    def log_lexical_sums(self) -> FloatArray:
        """Logarithms of `lexical_sums`, of probabilities below the smallest float too, (S,) nats."""
        logs = np.full(len(self.pcfg.symbols), -np.inf)
        np.logaddexp.at(logs, self.pcfg.lexical[:, 0], self.pcfg.lexical_logp)
        return logs

    @cached_property
    def unary_closure(self) -> FloatArray:
        """``(I - Un)^-1``, (S, S)."""
        if self.linear is not None:
            return np.asarray(self.linear.unary_closure.toarray())
        return closure.unary_closure(self.pcfg, self.mass)

    @cached_property
    def mass(self) -> FloatArray:
        """P(symbol derives a finite string), (S,)."""
        return closure.total_mass(self.pcfg) if self.linear is None else self.linear.mass

    @property
    def total_mass(self) -> float:
        """P(the start symbol derives a finite string); 1 for a consistent grammar."""
        return float(self.mass[self.pcfg.start])

    @cached_property
    def left_corner_closure(self) -> FloatArray:
        """``(I - P_L)^-1``, (S, S)."""
        return closure.left_corner_closure(self.pcfg, self.mass)

    @cached_property
    def _mean(self) -> csr_matrix[np.float64]:
        return mean_rows(self.pcfg)

    @cached_property
    def reached(self) -> BoolArray:
        """Which symbols occur in derivations from the start, (S,)."""
        return np.asarray(closure.reachable_from(self._mean, self.pcfg.start))

    @cached_property
    def perron(self) -> tuple[float, FloatArray, FloatArray]:
        """Spectral radius of the mean matrix over reachable symbols, and its left and right eigenvectors (S,)."""
        inner = np.flatnonzero(self.reached)
        radius, left, right = closure.perron(self._mean[inner][:, inner])
        full = np.zeros((2, len(self.pcfg.symbols)))
        full[:, inner] = left, right
        return radius, full[0], full[1]

    @property
    def spectral_radius(self) -> float:
        """Of the mean matrix over reachable symbols; below 1, derivations end and have finite mean size."""
        return self.perron[0]

    @cached_property
    def expected_symbols(self) -> FloatArray:
        """Expected number of each symbol in a derivation, (S,): ``v^T (I - M) = e_start^T``.

        Raises:
            InputError: the spectral radius is 1 or more.
        """
        inner = np.flatnonzero(self.reached)
        matrix = self._mean[inner][:, inner]
        if not closure.certainly_decays(matrix) and self.spectral_radius >= 1.0:
            raise InputError(f"the spectral radius is {self.spectral_radius:.6g}: expected counts are infinite")
        unit = (inner == self.pcfg.start).astype(np.float64)
        counts = np.zeros(len(self.pcfg.symbols))
        counts[inner] = closure.solve(matrix.T.tocsr(), unit)
        return counts

    @cached_property
    def expected_words(self) -> FloatArray:
        """Expected number of each word in a sentence, (V,), not conditioned on length."""
        return np.asarray(self.expected_symbols @ self.emission)

    @property
    def mean_length(self) -> float:
        """Expected number of tokens of a sentence, not conditioned."""
        return float(self.expected_words.sum())

    def length_masses(self, high: int) -> FloatArray:
        """``P(A yields exactly m tokens)``, (high+1, S)."""
        if self.linear is not None:
            return self.linear.length_masses(high)
        return length_masses(high, self.pairs, self.lexical_sums, self.unary_closure)

    def length_pmf(self, high: int, lengths: LengthRange | None = None) -> FloatArray:
        """P(a sentence has m tokens) for m = 0..high, (high+1,); renormalised within ``lengths``."""
        pmf = self.length_masses(max(high, lengths.high if lengths else 0))[:, self.pcfg.start].copy()
        if lengths is not None:
            pmf[: lengths.low] = 0.0
            pmf[lengths.high + 1 :] = 0.0
            pmf /= self.range_mass(lengths)
        return pmf[: high + 1]

    def range_mass(self, lengths: LengthRange) -> float:
        """``Z = P(lengths.low <= length <= lengths.high)``.

        Raises:
            InputError: it is zero.
        """
        if lengths not in self._range_masses:
            z = float(self.length_masses(lengths.high)[lengths.low :, self.pcfg.start].sum())
            if z <= 0.0:
                raise InputError(f"no sentence of this grammar has a length in {lengths}; choose another range")
            self._range_masses[lengths] = z
        return self._range_masses[lengths]

    def owed_corners(self, high: int) -> SparseRows:
        """Left-corner steps A -> C by rows C, columns A; values (nnz, high): mass of d = 0..high-1 tokens after C."""
        n = len(self.pcfg.symbols)
        a, c, right = self.pcfg.binary.T.astype(np.int64)
        keys, inverse = np.unique(c * n + a, return_inverse=True)
        value = np.zeros((len(keys), high))
        np.add.at(value, inverse, np.exp(self.pcfg.binary_logp)[:, None] * self.length_masses(high)[:high, right].T)
        start = np.searchsorted(keys // n, np.arange(n + 1)).astype(np.int32)
        return SparseRows(start, (keys % n).astype(np.int32), value)
