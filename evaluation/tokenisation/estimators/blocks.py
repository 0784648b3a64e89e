"""A text in blocks, and the likeliest segmentations of each, for estimators that the model itself guides.

A block is a word; a word of more than `LONGEST_BLOCK` characters, or a text without white space, is divided into
several, where the fewest pieces would be divided. A piece may reach over the end of a block: a segmentation
of the block then ends beyond it, and the next block is entered there, so every segmentation of the text is a
segmentation of its blocks in exactly one way. Where the lattice factorises at white space no piece reaches over
(Chirkova et al. 2023 treat that case only).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation.estimators.estimate import Document
from truesource.evaluation.tokenisation.estimators.tails import Tail
from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.evaluation.tokenisation.marginal import count_paths
from truesource.evaluation.tokenisation.n_best import n_best
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.generator.language_model import PieceInventory
from truesource.grammar.support.arrays import IntArray

LONGEST_BLOCK = 20  #: characters


@dataclass(frozen=True)
class Candidates:
    """The segmentations of a stretch of text with the largest sums of scores, best first, and the tokeniser's own.

    Its canonical tokenisation takes the place of the last of the best where it is not one of them: it is what a model
    was trained on, whatever the scores say (those of a BPE vocabulary are fitted ones).
    """

    tokens: tuple[IntArray, ...]  #: (M,) the model's numbers of the pieces of each
    sizes: IntArray  #: (M,) characters that each segmentation covers; all the same where no piece reaches over the end
    whole: bool  #: whether every segmentation of the stretch is among them
    tail: Tail | None  #: draws one of the others; None: there are none, or none are wanted


class Blocks:
    """The blocks of one document; segmentations are looked for once for each different stretch."""

    def __init__(
        self, document: Document, inventory: PieceInventory, settings: EstimatorSettings, *, tail: bool
    ) -> None:
        """Divide a document.

        Args:
            document: its lattice gives the segmentations and the scores that rank them.
            inventory: of the model's tokeniser.
            settings: ``candidates`` segmentations of a block are listed; tails are drawn at inverse temperature ``b``.
            tail: whether segmentations that are not listed can be drawn.
        """
        self.lattice = document.lattice
        self.ends = block_ends(self.lattice, inventory.marker, marker_ends=inventory.marker_ends)
        self._ids = inventory.ids
        self._most = max(1, settings.candidates)
        self._b = settings.b
        self._with_tail = tail
        self._own = document.best
        self._known: dict[tuple[int, bytes, bytes, bytes], Candidates] = {}
        self.stop = arc_ends(self.lattice)  #: (A,) position where each arc of the document ends
        self._reach = int((self.stop - self.lattice.source).max(initial=0))

    def candidates(self, entry: int, end: int) -> Candidates:
        """Segmentations from position ``entry`` to the first position of theirs that is ``end`` or later."""
        if entry >= end:  # a piece covers all of this block
            return Candidates((np.empty(0, dtype=np.int64),), np.zeros(1, dtype=np.int64), True, None)
        low, high = self.lattice.first[entry + 1], self.lattice.first[min(end + self._reach, self.lattice.n) + 1]
        arcs = np.arange(low, high)
        arcs = arcs[(self.lattice.source[low:high] >= entry) & (self.lattice.source[low:high] < end)]
        source = self.lattice.source[arcs] - entry
        own = self._canonical(entry, end)
        key = (end - entry, source.tobytes(), self.lattice.piece[arcs].tobytes(), self.lattice.piece[own].tobytes())
        if key not in self._known:
            self._known[key] = self._find(entry, end, arcs, own)
        return self._known[key]

    def _canonical(self, entry: int, end: int) -> IntArray:
        """The part of the canonical tokenisation that covers a stretch; empty where no piece of it begins there."""
        source = self.lattice.source[self._own]
        own = self._own[(source >= entry) & (source < end)]
        return own if len(own) and self.lattice.source[own[0]] == entry else own[:0]

    def _find(self, entry: int, end: int, arcs: IntArray, canonical: IntArray) -> Candidates:
        stretch, arcs = _stretch(self.lattice, self.stop, entry, end, arcs)
        listed = n_best(stretch, self._most)
        whole = count_paths(stretch) == len(listed)
        cuts: list[NDArray[np.integer]] = [*listed.each()]
        if len(canonical) and not any(np.array_equal(arcs[cut], canonical) for cut in cuts):
            order = np.argsort(arcs)
            cuts[-1] = order[np.searchsorted(arcs[order], canonical)]
        tokens = tuple(self._ids[stretch.piece[cut]] for cut in cuts)
        sizes = np.array([self.stop[arcs[cut[-1]]] - entry for cut in cuts], dtype=np.int64)
        tail = None
        if self._with_tail and not whole:
            tail = Tail(stretch, cuts, self._b, self._ids[stretch.piece], self.stop[arcs] - entry)
        return Candidates(tokens, sizes, whole, tail)


def arc_ends(lattice: Lattice) -> IntArray:
    """(A,) position where each arc ends."""
    return np.repeat(np.arange(lattice.n + 1), np.diff(lattice.first))


def word_ends(spelling: str, marker: str, *, marker_ends: bool) -> list[int]:
    """Positions between words, and the end of the text; a run of markers is one."""
    marked = np.array([character == marker for character in spelling])
    if marker_ends:
        inner = np.flatnonzero(marked[:-1] & ~marked[1:]) + 1
    else:
        inner = np.flatnonzero(marked[1:] & ~marked[:-1]) + 1
    return [*inner.tolist(), len(spelling)]


def block_ends(lattice: Lattice, marker: str, *, marker_ends: bool) -> list[int]:
    """Where the blocks of a text end."""
    over = np.zeros(lattice.n + 1, dtype=np.int64)  # arcs that begin before a position and end after it
    np.add.at(over, lattice.source + 1, 1)
    np.add.at(over, arc_ends(lattice), -1)
    over = np.cumsum(over)
    words = [0, *word_ends(lattice.spelling, marker, marker_ends=marker_ends)]
    found = []
    for low, high in itertools.pairwise(words):
        parts = -(-(high - low) // LONGEST_BLOCK)
        for part in range(1, parts):
            centre = low + part * (high - low) // parts
            found.append(min(range(centre - 3, centre + 4), key=lambda i: (over[i], abs(i - centre))))
        found.append(high)
    return found


def _stretch(lattice: Lattice, stop: IntArray, entry: int, end: int, arcs: IntArray) -> tuple[Lattice, IntArray]:
    """A lattice of what lies between two positions, and the number of each of its arcs in the whole.

    Arcs that reach over ``end`` end there; those that no path from ``entry`` comes to are left out.
    """
    reached = np.zeros(lattice.n + 1, dtype=bool)
    reached[entry] = True
    kept = []
    for arc in arcs.tolist():  # by end, so all arcs into a position come before those out of it
        if reached[lattice.source[arc]]:
            reached[stop[arc]] = True
            kept.append(arc)
    arcs = np.array(kept, dtype=np.int64)
    cut_off = np.minimum(stop[arcs], end)
    order = np.lexsort((lattice.source[arcs], cut_off))
    arcs, cut_off = arcs[order], cut_off[order]
    first = np.searchsorted(cut_off - entry, np.arange(end - entry + 2))
    stretch = Lattice(
        lattice.spelling[entry:end],
        first.astype(np.int64),
        (lattice.source[arcs] - entry).astype(np.int32),
        lattice.piece[arcs],
        lattice.score[arcs],
    )
    return stretch, arcs
