"""The order in which the words of a sentence become known, where a model is scored in any order."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from truesource.grammar.support.arrays import IntArray

ORDERS = 1  #: random orders that each sentence is scored in


def ranks(sentence: Sequence[str]) -> IntArray:
    """When each word becomes known, in random orders: (ORDERS, n) of 0 to n-1, each once a row.

    The orders depend on the words alone, so that a model and the truth, asked one after the other, see the same ones
    in whatever text the sentence stands.
    """
    rng = np.random.default_rng(zlib.crc32("\n".join(sentence).encode()))
    return np.stack([rng.permutation(len(sentence)) for _ in range(ORDERS)])
