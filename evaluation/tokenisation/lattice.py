"""All ways to cut a text into pieces, as arcs between its characters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Lattice:
    """Arcs over a text of n characters; every arc lies on some path from 0 to n.

    Arcs are sorted by end, then by source. A path is an array of arc numbers, left to right.
    """

    spelling: str  #: n characters
    first: NDArray[np.int64]  #: (n+2,) arcs that end at position i are first[i] to first[i+1] - 1; none end at 0
    source: NDArray[np.int32]  #: (A,) where each arc starts
    piece: NDArray[np.int32]  #: (A,) index into the inventory's pieces
    score: NDArray[np.float64]  #: (A,) of the piece, nats

    @property
    def n(self) -> int:
        """Characters."""
        return len(self.spelling)
