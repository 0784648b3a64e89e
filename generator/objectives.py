"""Objectives: the context of a predicted word, and the orders in which words become known."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from truesource.grammar.support.arrays import IntArray

Objective = Literal["causal", "masked", "any-order"]  #: context: previous, all other, or any other words
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
ORDERS = 1  #: number of random orders in which each sentence is scored


def ranks(sentence: Sequence[str]) -> IntArray:
    """Return when each word becomes known, in random orders: (ORDERS, n) of 0 to n-1, each once a row.

    The orders depend only on the words, so that a model and the truth use the same ones in any text.
    """
    import numpy as np

    rng = np.random.default_rng(zlib.crc32("\n".join(sentence).encode()))
    return np.stack([rng.permutation(len(sentence)) for _ in range(ORDERS)])
