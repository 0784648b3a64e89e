"""What the passes over trees take: named tuples of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from truesource.grammar.support.arrays import Int32Array, IntArray


class ForestNodes(NamedTuple):
    """The nodes of a forest; see `truesource.grammar.estimate.split_merge.encode.Forest`."""

    rule: Int32Array  #: (N,) base rule
    left: Int32Array  #: (N,)
    right: Int32Array  #: (N,)
    batches: IntArray  #: (M + 1,)
    offset: IntArray  #: (N,) where a node's vector starts


class Entries(NamedTuple):
    """The probabilities of a grammar with substates that are not zero, by base rule and pair of children.

    The child pairs (b, c) of base rule r are ``first_pair[r]`` to ``first_pair[r + 1]``, an absent child being
    substate 0; the parents' substates and probabilities of pair q are ``first_entry[q]`` to ``first_entry[q + 1]``,
    the dormant ones last.
    """

    first_pair: IntArray  #: (R + 1,)
    pair: Int32Array  #: (P, 2)
    first_entry: IntArray  #: (P + 1,)
    end_live: IntArray  #: (P,) one past the last entry of a pair that is not dormant
    substate: Int32Array  #: (E,)
    prob: NDArray[Any]  #: (E,) float64 or float32
