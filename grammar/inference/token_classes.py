"""Exact joint distribution of sentence length and the number of tokens in a set of words, such as stopwords."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts, length_table, range_table
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError


@dataclass(frozen=True, eq=False)
class TokenClass:
    """How many tokens of a sentence belong to a class of words.

    Given a range of lengths the joint pmf sums to one. Without one it covers sentences of at most ``high`` tokens and
    sums to their probability, `covered`; shares are then those of sentences so short.
    """

    joint: FloatArray  #: (high+1, high+1) P(n tokens, m of them in the class)
    pooled: float  #: expected tokens of the class over expected tokens, all lengths: share in pooled text (micro)

    @property
    def covered(self) -> float:
        """Probability of all sentences in ``joint``."""
        return float(self.joint.sum())

    def count_pmf(self) -> FloatArray:
        """P(m tokens of the class in a sentence), m = 0..high, (high+1,)."""
        return np.asarray(self.joint.sum(axis=0))

    def share_pmf(self) -> tuple[FloatArray, FloatArray]:
        """Distribution of m/n over sentences: the different shares, rising, and their probabilities, both (K,).

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
        """Expected share of a sentence, every sentence counting the same (macro)."""
        share, probability = self.share_pmf()
        return float(share @ probability)


def token_class(
    pcfg: PCFG, words: Iterable[str], lengths: LengthRange | None = None, *, high: int | None = None
) -> TokenClass:
    """Joint pmf of (number of tokens, number of tokens in ``words``), by a programme over both.

    ``l_{n,m}(A)`` is a convolution in two variables over the splits of each rule, O(P N^4 / 24 + R N^2 / 2) for P
    child pairs and R binary rules. Words that the grammar does not have change nothing.

    Args:
        pcfg: the grammar.
        words: the class.
        lengths: condition on this range; the joint pmf then goes up to ``lengths.high``.
        high: without ``lengths``, the longest sentence that the joint pmf covers.

    Raises:
        InputError: neither ``lengths`` nor ``high`` is given, or both; no sentence is so short; or, without
            ``lengths``, the spectral radius is 1 or more.
    """
    from truesource.grammar.inference._kernels.counts import class_masses

    if (lengths is None) == (high is None):
        raise InputError("give either a range of lengths or the longest sentence to cover")
    members = set(words)
    inside = np.array([word in members for word in pcfg.terminals], dtype=np.float64)
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
    masses = class_masses(top, plain, marked, table, exact.pairs, exact.unary_closure)
    joint = masses[:, pcfg.start, :] / z
    if lengths is not None:
        joint[: lengths.low] = 0.0
    expected = expected_counts(pcfg, lengths).words
    return TokenClass(np.ascontiguousarray(joint), float(expected @ inside / expected.sum()))
