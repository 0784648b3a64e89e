"""From a spelling to its lattice: all the ways in which an inventory's pieces spell it."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation._kernels import lattice as kernels
from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.generator.language_model import PieceInventory
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError


class LatticeBuilder:
    """Finds the pieces of an inventory in texts, and gives each its score."""

    def __init__(self, inventory: PieceInventory, scores: FloatArray | None = None) -> None:
        """Write the pieces into a trie.

        Args:
            inventory: the pieces.
            scores: (P,) nats; None: the inventory's own.

        Raises:
            InputError: there are no scores, one is not a finite number, or a piece is empty or comes twice.
        """
        if scores is None:
            scores = inventory.scores
        if scores is None:
            raise InputError(f"the {inventory.kind} pieces have no scores; give uniform or fitted ones")
        self.inventory = inventory
        self.scores: FloatArray = np.ascontiguousarray(scores, dtype=np.float64)  #: (P,) of the pieces, nats
        if self.scores.shape != (len(inventory.pieces),):
            raise ValueError(f"expecting one score for each of {len(inventory.pieces)} pieces")
        refused = np.flatnonzero(~np.isfinite(self.scores))
        if len(refused):
            worst = int(refused[0])
            raise InputError(
                f"the piece {inventory.pieces[worst]!r} has the score {self.scores[worst]}; scores must be finite"
            )
        self._slots, self._pieces, self._classes = _trie(inventory.pieces)
        #: whether no piece joins white space to what stands on its other side, so that words are segmented on their own
        self.factorises = _factorises(inventory)
        mark = re.escape(inventory.marker)
        self._word = re.compile(
            f"[^{mark}]*{mark}+|[^{mark}]+" if inventory.marker_ends else f"{mark}+[^{mark}]*|[^{mark}]+"
        )

    def build(self, spelling: str) -> Lattice:
        """The lattice of a text.

        Raises:
            InputError: the text is empty, or is no joining of pieces (the message names the characters).
        """
        n = len(spelling)
        if not n:
            raise InputError("there is no text to segment into pieces")
        return self._lattice(spelling, np.array((0, n)))

    def join(self, words: Sequence[str]) -> tuple[Lattice, IntArray]:
        """The lattice of words written one after the other, with no arc across their bounds.

        Returns:
            the lattice, and (W+1,) the positions where the words start.

        Raises:
            InputError: there are no words, or one is empty or no joining of pieces.
        """
        bounds = np.fromiter(itertools.accumulate(map(len, words), initial=0), dtype=np.int64, count=len(words) + 1)
        if not len(words) or (np.diff(bounds) == 0).any():
            raise InputError("there is no text to segment into pieces")
        return self._lattice("".join(words), bounds), bounds

    def spells(self, words: Sequence[str]) -> BoolArray:
        """(W,) whether each word is a joining of pieces."""
        bounds = np.fromiter(itertools.accumulate(map(len, words), initial=0), dtype=np.int64, count=len(words) + 1)
        spelt: BoolArray = kernels.spelt(self._slots, self._pieces, self._classes, _points("".join(words)), bounds)
        return spelt

    def words(self, spelling: str) -> list[str]:
        """The stretches, each from where a word begins to where the next begins, between which no arc crosses.

        A run of white space belongs to the word after it (before it, where the marker ends words). The whole text
        is one stretch if the lattice does not factorise.
        """
        if not self.factorises:
            return [spelling] if spelling else []
        return self._word.findall(spelling)

    def path(self, lattice: Lattice, pieces: IntArray) -> IntArray:
        """Arc numbers of a segmentation given as indices into the inventory's pieces.

        Raises:
            InputError: the pieces do not spell the text of the lattice.
        """
        ends = np.cumsum([len(self.inventory.pieces[p]) for p in pieces.tolist()])
        if not len(ends) or ends[-1] != lattice.n:
            raise InputError(f"the pieces of the segmentation do not spell {_short(lattice.spelling)!r}")
        arcs = np.empty(len(ends), dtype=np.int64)
        starts = [0, *ends.tolist()[:-1]]
        for k, (start, end, piece) in enumerate(zip(starts, ends.tolist(), pieces.tolist(), strict=True)):
            low, high = lattice.first[end], lattice.first[end + 1]
            arc = low + np.searchsorted(lattice.source[low:high], start)
            if arc == high or lattice.source[arc] != start or lattice.piece[arc] != piece:
                raise InputError(f"the pieces of the segmentation do not spell {_short(lattice.spelling)!r}")
            arcs[k] = arc
        return arcs

    def _lattice(self, spelling: str, bounds: IntArray) -> Lattice:
        first, source, piece, score, stuck = kernels.build_lattice(
            self._slots, self._pieces, self._classes, self.scores, _points(spelling), bounds
        )
        if stuck >= 0:
            raise InputError(self._complaint(spelling, stuck))
        return Lattice(spelling, first, source, piece, score)

    def _complaint(self, spelling: str, stuck: int) -> str:
        """Why there is no path: characters that are in no piece, or the one at which all paths end."""
        points = _points(spelling)
        known = np.zeros(len(points), dtype=np.bool_)
        small = points < len(self._classes)
        known[small] = self._classes[points[small]] > 0
        foreign = Counter(itertools.compress(spelling, ~known))
        if foreign:
            named = ", ".join(f"{c!r} (U+{ord(c):04X})" for c, _ in foreign.most_common(5))
            more = f" and {len(foreign) - 5} more" if len(foreign) > 5 else ""
            return f"no piece holds the character {named}{more}"
        around = spelling[max(stuck - 10, 0) : stuck + 10]
        return f"no pieces spell the text from character {stuck + 1} on, {spelling[stuck]!r} in {around!r}"


def _trie(pieces: Sequence[str]) -> tuple[NDArray[np.uint32], Int32Array, Int32Array]:
    """Slots and pieces as in `_kernels.lattice`, and the class of each code point; common characters come first."""
    if not all(pieces) or len(set(pieces)) != len(pieces) or not pieces:
        raise InputError("an inventory needs pieces, all different and none empty")
    order = sorted(range(len(pieces)), key=pieces.__getitem__)
    bounds = np.fromiter(
        itertools.accumulate((len(pieces[k]) for k in order), initial=0), dtype=np.int64, count=len(pieces) + 1
    )
    points = _points("".join(pieces[k] for k in order))
    kinds, inverse, counts = np.unique(points, return_inverse=True, return_counts=True)
    rank = np.empty(len(kinds), dtype=np.int32)
    rank[np.argsort(-counts, kind="stable")] = np.arange(1, len(kinds) + 1)
    classes = np.zeros(int(kinds[-1]) + 1, dtype=np.int32)
    classes[kinds] = rank
    slots, ending = kernels.build_trie(rank[inverse], bounds, len(kinds))
    numbers: Int32Array = np.append(np.array(order, dtype=np.int32), np.int32(-1))[ending]
    return slots, numbers, classes


def _points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _factorises(inventory: PieceInventory) -> bool:
    """Whether the marker stands in no piece but in a run at its beginning (its end, where the marker ends words)."""
    mark = inventory.marker
    strip = str.rstrip if inventory.marker_ends else str.lstrip
    return not any(mark in strip(piece, mark) for piece in inventory.pieces)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
