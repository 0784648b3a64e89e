"""Expected rule, symbol and word counts of a sentence, exact, given a range of lengths or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truesource.grammar._kernels.rules import LengthTable
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.length import extent
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

SMALLEST_MASS = 1e-290  #: below this probability of a length range, its inverse would overflow


def length_table(pcfg: PCFG, high: int) -> LengthTable:
    """Inside masses of every symbol up to ``high`` tokens."""
    masses = np.ascontiguousarray(pcfg.exact.length_masses(high).T)
    return LengthTable(masses, np.ascontiguousarray(masses[:, ::-1]), *extent(masses))


def range_table(pcfg: PCFG, lengths: LengthRange) -> tuple[LengthTable, float]:
    """Inside masses up to ``lengths.high``, and ``Z = P(lengths.low <= length <= lengths.high)``.

    Raises:
        InputError: Z is zero, or so small that its inverse overflows.
    """
    table = length_table(pcfg, lengths.high)
    z = float(table.masses[pcfg.start, lengths.low :].sum())
    if z <= 0.0:
        raise InputError(f"no sentence of this grammar has a length in {lengths}; choose another range")
    if z < SMALLEST_MASS:
        raise InputError(f"a length in {lengths} has probability {z:.3g}, too small to divide by; choose another range")
    return table, z


def outside_masses(pcfg: PCFG, table: LengthTable, lengths: LengthRange, z: float) -> tuple[FloatArray, FloatArray]:
    """Outside masses lambda by length, (N+1, S), and expected uses of the binary rules, (R,), given ``lengths``.

    ``lambda_n(A)`` is the weight of all that can stand around an A of n tokens in a sentence of the range,
    divided by Z; times the inside mass it is the expected number of such A. It solves
    ``lambda_n = U^T ([n in range] e_start / Z + sum_{m > n} sum_{P, X} lambda_m(P) (P(P -> . X) + P(P -> X .))
    l_{m-n}(X))``, from the longest length down, in O(R N + P N^2) for P child pairs. Where the inside mass is
    zero the value is not defined.
    """
    from truesource.grammar.inference._kernels.counts import rule_counts

    seed = np.zeros(lengths.high + 1)
    seed[lengths.low :] = 1.0 / z
    outside, uses = rule_counts(table, pcfg.start, seed, pcfg.exact.pairs, pcfg.exact.unary_closure)
    return outside, uses


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """Expected numbers in one derivation. Rules are in the order of the grammar's arrays."""

    symbols: FloatArray  #: (S,) nodes of each symbol
    words: FloatArray  #: (V,) tokens of each word
    binary: FloatArray  #: (R,) uses of each rule
    unary: FloatArray  #: (Q,)
    lexical: FloatArray  #: (L,)
    mass: float  #: probability of the range of lengths that they are given; 1 without one

    @property
    def length(self) -> float:
        """Expected number of tokens."""
        return float(self.words.sum())


def expected_counts(pcfg: PCFG, lengths: LengthRange | None = None) -> ExpectedCounts:
    """How often each symbol, rule and word is expected in one sentence.

    Without ``lengths``: symbol counts solve ``N^T (I - M) = e_start^T`` and rules follow. With ``lengths``: inside
    times outside masses by length, so that a grammar that leaks mass, or whose unconditioned counts are infinite,
    is welcome.

    Raises:
        InputError: without ``lengths``, the spectral radius is 1 or more; with them, no sentence has such a length.
    """
    exact = pcfg.exact
    parent, child = pcfg.unary.T
    unary_p, lexicon = np.exp(pcfg.unary_logp), exact.lexicon
    if lengths is None:
        z = 1.0
        symbols = tagged = exact.expected_symbols
        binary = symbols[exact.pairs.parent] * exact.pairs.prob
        unary = symbols[parent] * unary_p
    else:
        table, z = range_table(pcfg, lengths)
        outside, binary = outside_masses(pcfg, table, lengths, z)
        inside = table.masses.T
        symbols, tagged = (outside * inside).sum(axis=0), outside[1]
        unary = unary_p * np.einsum("nq,nq->q", outside[:, parent], inside[:, child])
    lexical = tagged[lexicon.parent] * lexicon.prob
    words = np.asarray(tagged @ exact.emission)
    return ExpectedCounts(symbols, words, binary, unary, lexical, z)


@dataclass(frozen=True, eq=False)
class TokenDistribution:
    """Distribution of one token drawn from the pooled tokens of a corpus, ends of sentences counted as tokens."""

    words: FloatArray  #: (V,) probability of each word
    end: float  #: probability of the end of the sentence

    @property
    def entropy(self) -> float:
        """Nats a token."""
        p = np.append(self.words, self.end)
        p = p[p > 0.0]
        return float(-(p * np.log(p)).sum())


def unigram(pcfg: PCFG, lengths: LengthRange | None = None) -> TokenDistribution:
    """The exact unigram distribution: ``E c(w) / (E L + 1)``, and ``1 / (E L + 1)`` for the end of the sentence.

    Raises:
        InputError: as `expected_counts`.
    """
    words = expected_counts(pcfg, lengths).words
    tokens = float(words.sum()) + 1.0
    return TokenDistribution(words / tokens, 1.0 / tokens)
