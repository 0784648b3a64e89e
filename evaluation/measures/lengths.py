"""Sentence lengths as counts and as probabilities (figure 4a of Jumelet & Zuidema 2023)."""

from __future__ import annotations

import numpy as np

from truesource.grammar.support.arrays import FloatArray, IntArray


def length_counts(lengths: IntArray, high: int) -> IntArray:
    """Sentences of 0, 1, ..., ``high`` tokens and, last, of more, (high+2,)."""
    return np.bincount(np.minimum(lengths, high + 1), minlength=high + 2)


def with_rest(pmf: FloatArray) -> FloatArray:
    """A length pmf up to a highest length, and the mass beyond it; (high+1,) gives (high+2,)."""
    return np.append(pmf, max(0.0, 1.0 - float(pmf.sum())))
