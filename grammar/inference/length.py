"""The exact sentence-length distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.inference._kernels import length as _kernels_length
from truesource.grammar.pcfg import PCFG

FloatArray = NDArray[np.float64]


def length_masses(pcfg: PCFG, high: int) -> FloatArray:
    """``P(A yields exactly m tokens)`` for every symbol and m up to ``high``, (high+1, S); row 0 is zero.

    Dynamic programme over m in O(P high^2 + R high) for P child pairs and R binary rules.
    """
    pairs = pcfg.exact.pairs
    leaf = np.asarray(pcfg.exact.lexical_sums)
    return np.asarray(
        _kernels_length.length_masses(
            high, leaf, pairs.left, pairs.right, pairs.rule_start, pairs.parent, pairs.prob, pcfg.exact.unary_closure
        )
    )
