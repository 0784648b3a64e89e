"""Exact expectations over sentences: counts of rules, symbols and words, entropy, classes of tokens.

All are over sentences of any length or in a range of lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from truesource.grammar._kernels.rules import LengthTable
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference._kernels import counts as kernels
from truesource.grammar.inference.rules import extent
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

SMALLEST_MASS = 1e-290  #: below this probability of a length range, its inverse would overflow


def length_table(pcfg: PCFG, high: int) -> LengthTable:
    """Return inside masses of every symbol up to ``high`` tokens."""
    masses = np.ascontiguousarray(pcfg.exact.length_masses(high).T)
    return LengthTable(masses, np.ascontiguousarray(masses[:, ::-1]), *extent(masses))


def range_table(pcfg: PCFG, lengths: LengthRange) -> tuple[LengthTable, float]:
    """Return inside masses up to ``lengths.high``, and ``Z = P(lengths.low <= length <= lengths.high)``.

    Raises:
        InputError: Z is zero, or so small that its inverse overflows.
    """
    table = length_table(pcfg, lengths.high)
    z = float(table.masses[pcfg.start, lengths.low :].sum())
    if z <= 0.0:
        raise pcfg.exact.no_length(lengths)
    if z < SMALLEST_MASS:
        raise InputError(f"a length in {lengths} has probability {z:.3g}, too small to divide by; choose another range")
    return table, z


def outside_masses(pcfg: PCFG, table: LengthTable, lengths: LengthRange, z: float) -> tuple[FloatArray, FloatArray]:
    """Return outside masses lambda by length, (N+1, S), and expected uses of the binary rules, (R,), given ``lengths``.

    ``lambda_n(A)`` is the weight of all contexts of an A of n tokens in a sentence of the range,
    divided by Z; times the inside mass it is the expected number of such A. It solves
    ``lambda_n = U^T ([n in range] e_start / Z + sum_{m > n} sum_{P, X} lambda_m(P) (P(P -> . X) + P(P -> X .))
    l_{m-n}(X))``, from the longest length down, in O(R N + P N^2) for P child pairs. If the inside mass is
    zero the value is undefined.
    """
    seed = np.zeros(lengths.high + 1)
    seed[lengths.low :] = 1.0 / z
    outside, uses = kernels.rule_counts(table, pcfg.start, seed, pcfg.exact.pairs, pcfg.exact.unary_closure)
    return outside, uses


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """Expected counts in one derivation. Rules are in the order of the grammar's arrays."""

    symbols: FloatArray  #: (S,) nodes of each symbol
    words: FloatArray  #: (V,) tokens of each word
    binary: FloatArray  #: (R,) uses of each rule
    unary: FloatArray  #: (Q,)
    lexical: FloatArray  #: (L,)
    mass: float  #: probability of the range of lengths in the condition; 1 without one

    @property
    def length(self) -> float:
        """Expected number of tokens."""
        return float(self.words.sum())


def expected_counts(pcfg: PCFG, lengths: LengthRange | None = None) -> ExpectedCounts:
    """Return the expected number of each symbol, rule and word in one sentence.

    Without ``lengths``: symbol counts solve ``N^T (I - M) = e_start^T`` and rules follow. With ``lengths``: inside
    times outside masses by length, which also works for a grammar that leaks mass, or whose unconditioned counts are
    infinite.

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
    """The distribution of one token drawn from the pooled tokens of a corpus, where ends of sentences are tokens."""

    words: FloatArray  #: (V,) probability of each word
    end: float  #: probability of the end of the sentence

    @property
    def entropy(self) -> float:
        """Entropy, nats a token."""
        p = np.append(self.words, self.end)
        p = p[p > 0.0]
        return float(-(p * np.log(p)).sum())


def unigram(pcfg: PCFG, lengths: LengthRange | None = None) -> TokenDistribution:
    """Return the exact unigram distribution: ``E c(w) / (E L + 1)``, and ``1 / (E L + 1)`` for the end of the sentence.

    Raises:
        InputError: as `expected_counts`.
    """
    words = expected_counts(pcfg, lengths).words
    tokens = float(words.sum()) + 1.0
    return TokenDistribution(words / tokens, 1.0 / tokens)


def derivational_entropy(pcfg: PCFG, lengths: LengthRange | None = None) -> float:
    """Return the exact entropy of derivations, nats a sentence: symbol counts times rule entropies (Grenander 1967).

    Given ``lengths``, the probability of a derivation is divided by ``Z = P(length in range)``, and the entropy is
    ``ln Z - sum_rules E[count | range] ln p``. The entropy of sentences is smaller by the expected ambiguity.

    Raises:
        InputError: without ``lengths``, the spectral radius is 1 or more; with them, no sentence has such a length.
    """
    if lengths is not None:
        counts = expected_counts(pcfg, lengths)
        spent = sum(
            float(uses @ logp)
            for uses, logp in (
                (counts.binary, pcfg.binary_logp),
                (counts.unary, pcfg.unary_logp),
                (counts.lexical, pcfg.lexical_logp),
            )
        )
        return max(math.log(counts.mass) - spent, 0.0)
    entropy = np.zeros(len(pcfg.symbols))
    for rules, logp in pcfg.tables():
        np.add.at(entropy, rules[:, 0], -np.exp(logp) * logp)
    return float(pcfg.exact.expected_symbols @ entropy)


@dataclass(frozen=True, eq=False)
class TokenClass:
    """The distribution of the number of tokens of a sentence that belong to a class of words.

    Given a range of lengths the joint pmf sums to one. Without one it covers sentences of at most ``high`` tokens and
    sums to their probability, `covered`; shares are then shares of these sentences only.
    """

    joint: FloatArray  #: (high+1, high+1) P(n tokens, m of them in the class)
    pooled: float  #: expected tokens of the class over expected tokens, all lengths: micro average share

    @property
    def covered(self) -> float:
        """Total probability of the sentences in ``joint``."""
        return float(self.joint.sum())

    def count_pmf(self) -> FloatArray:
        """Return P(m tokens of the class in a sentence), m = 0..high, (high+1,)."""
        return np.asarray(self.joint.sum(axis=0))

    def share_pmf(self) -> tuple[FloatArray, FloatArray]:
        """Return the distribution of m/n over sentences: the distinct shares, ascending, and probabilities, both (K,).

        Equal fractions are one share, exactly; the probabilities sum to one.
        """
        n, m = np.nonzero(self.joint)
        common = np.gcd(n, m)
        size = len(self.joint)
        keys, inverse = np.unique((m // common) * size + n // common, return_inverse=True)
        probability = np.bincount(inverse, weights=self.joint[n, m]) / self.covered
        share = (keys // size) / (keys % size)
        order = np.argsort(share)
        return share[order], probability[order]

    @property
    def mean_share(self) -> float:
        """Expected share of a sentence, every sentence weighted equally (macro average)."""
        share, probability = self.share_pmf()
        return float(share @ probability)


def token_class(
    pcfg: PCFG, words: Iterable[str], lengths: LengthRange | None = None, *, high: int | None = None
) -> TokenClass:
    """Return the joint pmf of (number of tokens, number of tokens in ``words``), by dynamic programming over both.

    ``l_{n,m}(A)`` is a convolution in two variables over the splits of each rule, O(P N^4 / 24 + R N^2 / 2) for P child
    pairs and R binary rules. Words that are not in the grammar have no effect.

    Args:
        pcfg: the grammar.
        words: the class.
        lengths: condition on this range; the joint pmf then extends to ``lengths.high``.
        high: without ``lengths``, the greatest length that the joint pmf covers.

    Raises:
        InputError: neither ``lengths`` nor ``high`` is given, or both; no sentence is so short; or, without
            ``lengths``, the spectral radius is 1 or more.
    """
    if (lengths is None) == (high is None):
        raise InputError("give either a range of lengths or the greatest length to cover")
    members = set(words)
    inside = np.array([word in members for word in pcfg.vocabulary], dtype=np.float64)
    if lengths is not None:
        table, z = range_table(pcfg, lengths)
        top = lengths.high
    else:
        assert high is not None
        top, z = max(high, 0), 1.0
        table = length_table(pcfg, top)
        if not (table.masses[pcfg.start] > 0.0).any():
            raise InputError(f"no sentence of this grammar has at most {top} tokens; cover longer ones")
    exact = pcfg.exact
    plain, marked = (np.asarray(exact.emission @ share) for share in (1.0 - inside, inside))
    masses = kernels.class_masses(top, plain, marked, table, exact.pairs, exact.unary_closure)
    joint = masses[:, pcfg.start, :] / z
    if lengths is not None:
        joint[: lengths.low] = 0.0
    expected = expected_counts(pcfg, lengths).words
    return TokenClass(np.ascontiguousarray(joint), float(expected @ inside / expected.sum()))
