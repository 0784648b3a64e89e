"""Objectives: what a word is predicted from, and the orders in which words become known."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from truesource.grammar.support.arrays import IntArray

Objective = Literal["causal", "masked", "any-order"]  #: what a word is predicted from: those before, all, or any others
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
ORDERS = 1  #: random orders that each sentence is scored in


def ranks(sentence: Sequence[str]) -> IntArray:
    """When each word becomes known, in random orders: (ORDERS, n) of 0 to n-1, each once a row.

    The orders depend on the words alone, so that a model and the truth, asked one after the other, see the same ones
    in whatever text the sentence stands.
    """
    import numpy as np

    rng = np.random.default_rng(zlib.crc32("\n".join(sentence).encode()))
    return np.stack([rng.permutation(len(sentence)) for _ in range(ORDERS)])
