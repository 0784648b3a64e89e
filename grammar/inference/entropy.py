"""Exact entropy of derivations, given a range of lengths or not."""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG


def derivational_entropy(pcfg: PCFG, lengths: LengthRange | None = None) -> float:
    """Exact entropy of derivations, nats a sentence: symbol counts times rule entropies (Grenander 1967).

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
