"""The exact sentence-length distribution."""

from __future__ import annotations

import numpy as np

from truesource.grammar._kernels.rules import PairRules
from truesource.grammar.inference._kernels import length as kernels
from truesource.grammar.support.arrays import FloatArray, IntArray


def length_masses(high: int, pairs: PairRules, lexical_sums: FloatArray, unary_closure: FloatArray) -> FloatArray:
    """``P(A yields exactly m tokens)`` for every symbol and m up to ``high``, (high+1, S); row 0 is zero.

    Dynamic programme over m in O(P high^2 + R high) for P child pairs and R binary rules.

    Args:
        high: most tokens.
        pairs: binary rules by child pair.
        lexical_sums: P(symbol is a preterminal of some word), (S,).
        unary_closure: (S, S).
    """
    return np.asarray(kernels.length_masses(high, lexical_sums, pairs, unary_closure))


def extent(masses: FloatArray) -> tuple[IntArray, IntArray]:
    """First and last place of each row of ``masses`` (R, N) that is not zero, (R,) each; N and 0 where all are zero."""
    some = masses > 0.0
    found = some.any(axis=1)
    last = masses.shape[1] - 1 - some[:, ::-1].argmax(axis=1)
    return np.where(found, some.argmax(axis=1), masses.shape[1]), np.where(found, last, 0)
