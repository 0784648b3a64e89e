"""All segmentations of a text into pieces, as arcs between its characters."""

from __future__ import annotations

from dataclasses import dataclass

from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray


@dataclass(frozen=True)
class Lattice:
    """Arcs over a text of n characters; every arc lies on some path from 0 to n.

    Arcs are sorted by end, then by source. A path is an array of arc numbers, left to right.
    """

    spelling: str  #: n characters
    first: IntArray  #: (n+2,) arcs that end at position i are first[i] to first[i+1] - 1; none end at 0
    source: Int32Array  #: (A,) where each arc starts
    piece: Int32Array  #: (A,) index into the inventory's pieces
    score: FloatArray  #: (A,) of the piece, nats

    @property
    def n(self) -> int:
        """Characters."""
        return len(self.spelling)
