"""All segmentations of a text into pieces, as arcs between its characters, and exact sums over them.

`LatticeBuilder` finds the pieces of an inventory in texts. An arc is a token: tokens of one spelling are several arcs.
With byte tokens, the characters are bytes (see `PieceInventory`).

Sums are over the paths of a lattice: Q_b(T) = exp(b * score of T) / Z_b, b = 1/tau. b = 1 is the distribution of the
unigram model, b = 0 the uniform distribution over paths, and the larger b, the more mass is on the best path. Every sum
takes time proportional to the arcs, and raises `InputError` for a b that is negative, not finite, or so large that
scores times b overflow (Cao & Rimell 2021, section 3; their algorithm 1 with the sign of its logarithm corrected).
`fit_scores` estimates scores for pieces without scores.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation._kernels import lattice as lattice_kernels
from truesource.evaluation.tokenisation._kernels import sums as sum_kernels
from truesource.generator.piece_model import PieceInventory, byte_scores
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter


@dataclass(frozen=True)
class Lattice:
    """A lattice of arcs over a text of n characters; every arc is on some path from 0 to n.

    Arcs are sorted by end, then by source. A path is an array of arc numbers, left to right.
    """

    spelling: str  #: n characters
    first: IntArray  #: (n+2,) arcs that end at position i are first[i] to first[i+1] - 1; none end at 0
    source: Int32Array  #: (A,) where each arc starts
    piece: Int32Array  #: (A,) index into the inventory's pieces
    score: FloatArray  #: (A,) score of the piece, nats

    @property
    def n(self) -> int:
        """Characters."""
        return len(self.spelling)


def arc_ends(lattice: Lattice) -> IntArray:
    """Compute the position where each arc ends, (A,)."""
    return np.repeat(np.arange(lattice.n + 1), np.diff(lattice.first))


class LatticeBuilder:
    """A builder of lattices, which finds the pieces of an inventory in texts and adds their scores."""

    def __init__(self, inventory: PieceInventory, scores: FloatArray | None = None) -> None:
        """Write the pieces into a trie.

        Args:
            inventory: the pieces.
            scores: scores of the pieces, (P,) nats; None: the scores of the inventory.

        Raises:
            InputError: there are no scores, one is not a finite number, there are no pieces, or one is empty.
        """
        if scores is None:
            scores = inventory.scores
        if scores is None:
            raise InputError(f"the {inventory.kind} pieces have no scores; use uniform or fitted ones")
        self.inventory = inventory
        self.scores: FloatArray = np.ascontiguousarray(scores, dtype=np.float64)  #: (P,) of the pieces, nats
        if self.scores.shape != (len(inventory.pieces),):
            raise ValueError(f"expecting one score for each of {len(inventory.pieces)} pieces")
        refused = np.flatnonzero(~np.isfinite(self.scores))
        if len(refused):
            worst = int(refused[0])
            raise InputError(
                f"the piece {inventory.names[worst]!r} has the score {self.scores[worst]}; scores must be finite"
            )
        self._homographs = Homographs.of(inventory)
        self._slots, self._pieces, self._classes = _trie(self._homographs.spellings)
        #: True if no piece joins characters on both sides of white space, so that words are segmented separately
        self.factorises = _factorises(inventory)
        mark = re.escape(inventory.marker)
        self._word = re.compile(
            f"[^{mark}]*{mark}+|[^{mark}]+" if inventory.marker_ends else f"{mark}+[^{mark}]*|[^{mark}]+"
        )

    def build(self, spelling: str) -> Lattice:
        """Build the lattice of a text.

        Raises:
            InputError: the text is empty, or is not a concatenation of pieces (the message names the characters).
        """
        n = len(spelling)
        if not n:
            raise InputError("there is no text to segment into pieces")
        return self._lattice(spelling, np.array((0, n)))

    def join(self, words: Sequence[str]) -> tuple[Lattice, IntArray]:
        """Build the lattice of concatenated words, without arcs across word boundaries.

        Returns:
            the lattice, and the positions where the words start, (W+1,).

        Raises:
            InputError: there are no words, or one is empty or not a concatenation of pieces.
        """
        bounds = np.fromiter(itertools.accumulate(map(len, words), initial=0), dtype=np.int64, count=len(words) + 1)
        if not len(words) or (np.diff(bounds) == 0).any():
            raise InputError("there is no text to segment into pieces")
        return self._lattice("".join(words), bounds), bounds

    def spells(self, words: Sequence[str]) -> BoolArray:
        """Return True (W,) for words that are concatenations of pieces."""
        bounds = np.fromiter(itertools.accumulate(map(len, words), initial=0), dtype=np.int64, count=len(words) + 1)
        spelt: BoolArray = lattice_kernels.spelt(
            self._slots, self._pieces, self._classes, _points("".join(words)), bounds
        )
        return spelt

    def words(self, spelling: str) -> list[str]:
        """Split a text into stretches from one word to the next, so that no arc crosses their ends.

        A run of white space belongs to the word after it (to the word before it, if the marker ends words). The whole
        text is one stretch if the lattice does not factorise.
        """
        if not self.factorises:
            return [spelling] if spelling else []
        return self._word.findall(spelling)

    def path(self, lattice: Lattice, pieces: IntArray) -> IntArray:
        """Convert a segmentation, given as indices into the inventory's pieces, to arc numbers.

        Raises:
            InputError: the pieces do not spell the text of the lattice.
        """
        ends = np.cumsum([len(self.inventory.pieces[p]) for p in pieces.tolist()])
        if not len(ends) or ends[-1] != lattice.n:
            raise self._other_text(lattice)
        arcs = np.empty(len(ends), dtype=np.int64)
        starts = [0, *ends.tolist()[:-1]]
        for k, (start, end, piece) in enumerate(zip(starts, ends.tolist(), pieces.tolist(), strict=True)):
            low, high = lattice.first[end], lattice.first[end + 1]
            arc = low + np.searchsorted(lattice.source[low:high], start)
            while arc < high and lattice.source[arc] == start and lattice.piece[arc] != piece:
                arc += 1
            if arc == high or lattice.source[arc] != start:
                raise self._other_text(lattice)
            arcs[k] = arc
        return arcs

    def _other_text(self, lattice: Lattice) -> InputError:
        text = self.inventory.readable(lattice.spelling)
        return InputError(f"the pieces of the segmentation do not spell {_short(text)!r}")

    def _lattice(self, spelling: str, bounds: IntArray) -> Lattice:
        first, source, piece, score, stuck = lattice_kernels.build_lattice(
            self._slots, self._pieces, self._classes, self.scores, _points(spelling), bounds
        )
        if stuck >= 0:
            raise InputError(self._complaint(spelling, stuck))
        if len(self._homographs.spellings) < len(self.scores):
            first, source, piece = self._homographs.arcs(first, source, piece)
            score = self.scores[piece]
        return Lattice(spelling, first, source, piece, score)

    def _complaint(self, spelling: str, stuck: int) -> str:
        """Explain why there is no path: characters that are in no piece, or where all paths end."""
        points = _points(spelling)
        is_known = np.zeros(len(points), dtype=np.bool_)
        small = points < len(self._classes)
        is_known[small] = self._classes[points[small]] > 0
        foreign = Counter(itertools.compress(spelling, ~is_known))
        if foreign:
            named = ", ".join(f"{c!r} (U+{ord(c):04X})" for c, _ in foreign.most_common(5))
            more = f" and {len(foreign) - 5} more" if len(foreign) > 5 else ""
            return f"no piece contains the character {named}{more}"
        around = spelling[max(stuck - 10, 0) : stuck + 10]
        return f"no pieces spell the text after character {stuck}, {spelling[stuck]!r} in {around!r}"


@dataclass(frozen=True)
class Homographs:
    """The tokens of each spelling."""

    spellings: tuple[str, ...]  #: (U,) all distinct
    tokens: Int32Array  #: (P,) indices of pieces, spelling by spelling, byte tokens last
    first: IntArray  #: (U+1,) the tokens of spelling u are ``tokens[first[u]:first[u + 1]]``

    @classmethod
    def of(cls, inventory: PieceInventory) -> Homographs:
        """Group the pieces of an inventory by spelling."""
        places: dict[str, int] = {}
        group = np.array([places.setdefault(piece, len(places)) for piece in inventory.pieces], dtype=np.int64)
        is_byte = np.zeros(len(group)) if inventory.byte_tokens is None else inventory.byte_tokens
        order = np.lexsort((is_byte, group)).astype(np.int32)
        return cls(tuple(places), order, np.searchsorted(group[order], np.arange(len(places) + 1)))

    def arcs(
        self, first: IntArray, source: Int32Array, spelling: Int32Array
    ) -> tuple[IntArray, Int32Array, Int32Array]:
        """Return ``first``, ``source`` and ``piece`` of a lattice, with an arc for each token of each spelling."""
        counts = np.diff(self.first)[spelling]
        bounds = np.concatenate([[0], np.cumsum(counts)])
        within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], counts)
        tokens = self.tokens[np.repeat(self.first[spelling], counts) + within]
        return bounds[first], np.repeat(source, counts), tokens


def _trie(pieces: Sequence[str]) -> tuple[NDArray[np.uint32], Int32Array, Int32Array]:
    """Build the slots of distinct pieces as in `_kernels.lattice`, and the class of each character, common ones first.

    Returns:
        slots, pieces, classes.
    """
    if not all(pieces) or not pieces:
        raise InputError("an inventory needs at least one piece, and no empty piece")
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
    slots, ending = lattice_kernels.build_trie(rank[inverse], bounds, len(kinds))
    numbers: Int32Array = np.append(np.array(order, dtype=np.int32), np.int32(-1))[ending]
    return slots, numbers, classes


def _points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _factorises(inventory: PieceInventory) -> bool:
    """Return True if markers are only at the beginning of pieces (at the end, if the marker ends words)."""
    mark = inventory.marker
    strip = str.rstrip if inventory.marker_ends else str.lstrip
    return not any(mark in strip(piece, mark) for piece in inventory.pieces)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def forward(lattice: Lattice, b: float = 1.0) -> FloatArray:
    """Compute the log of the sum over paths from 0 to each position, (n+1,) nats; -inf at positions on no path."""
    sums: FloatArray = sum_kernels.forward(lattice.first, lattice.source, lattice.score, checked(b))
    finite(sums[-1], b)
    return sums


def log_partition(lattice: Lattice, b: float = 1.0) -> float:
    """Compute log Z_b, nats."""
    return partition_and_entropy(lattice, b)[0]


def entropy(lattice: Lattice, b: float = 1.0) -> float:
    """Compute the entropy of Q_b, nats, at least 0."""
    return partition_and_entropy(lattice, b)[1]


def partition_and_entropy(lattice: Lattice, b: float = 1.0) -> tuple[float, float]:
    """Compute log Z_b and the entropy of Q_b, nats, in one pass."""
    both: tuple[float, float] = sum_kernels.partition_entropy(lattice.first, lattice.source, lattice.score, checked(b))
    finite(both[0] + both[1], b)
    return both


def arc_marginals(lattice: Lattice, b: float = 1.0) -> FloatArray:
    """Compute the probability under Q_b that a path takes each arc, (A,), 0 to 1."""
    marginal: FloatArray
    marginal, partition = sum_kernels.marginals(
        lattice.first, lattice.source, lattice.score, checked(b), np.array((0, lattice.n)), np.ones(1)
    )
    finite(partition[0], b)
    return marginal


def count_paths(lattice: Lattice) -> int:
    """Count the paths."""
    # all paths meet at the positions that no arc crosses, so numbers stay small between these positions
    n = lattice.n
    furthest = np.full(n + 1, n, dtype=np.int64)
    ends = np.flatnonzero(np.diff(lattice.first))
    furthest[ends] = lattice.source[lattice.first[ends]]
    behind = np.minimum.accumulate(furthest[::-1])[::-1]
    met = np.append(np.flatnonzero(behind[1:] >= np.arange(n)), n)
    counts = sum_kernels.counts(lattice.first, lattice.source, met)
    whole = counts.tolist()
    for k in np.flatnonzero(counts < 0).tolist():
        whole[k] = exact_count(lattice, int(met[k]), int(met[k + 1]))
    while len(whole) > 1:  # factors of similar size are multiplied fastest
        whole = [math.prod(whole[k : k + 2]) for k in range(0, len(whole), 2)]
    return int(whole[0])


def exact_count(lattice: Lattice, low: int, high: int) -> int:
    """Count the paths from one position to another, in integers of any size."""
    number = {low: 1}
    source, first = lattice.source.tolist(), lattice.first.tolist()
    for i in range(low + 1, high + 1):
        number[i] = sum(number.get(j, 0) for j in source[first[i] : first[i + 1]])
    return number[high]


def best_path(lattice: Lattice) -> IntArray:
    """Find the path with the largest sum of scores; of equal sums, with fewer arcs, then with the longest last arc."""
    path: IntArray = sum_kernels.best(lattice.first, lattice.source, lattice.score)
    return path


def checked(b: float) -> float:
    """Check and return an inverse temperature."""
    if not (math.isfinite(b) and b >= 0.0):
        raise InputError(f"the inverse temperature must be a finite number of at least 0, not {b}")
    return float(b)


def finite(value: float, b: float) -> None:
    """Raise `InputError` if a sum with inverse temperature b is not a finite number."""
    if not math.isfinite(value):
        raise InputError(f"scores times the inverse temperature {b} overflow; use a smaller inverse temperature")


def uniform_scores(inventory: PieceInventory) -> FloatArray:
    """Return scores of 0, (P,): with them, Q_b is uniform over paths for every b."""
    return np.zeros(len(inventory.pieces))


def fit_scores(
    inventory: PieceInventory,
    words: Mapping[str, int],
    *,
    iterations: int = 50,
    tolerance: float = 1e-6,
    floor: float = 1e-9,
) -> FloatArray:
    """Estimate maximum-likelihood unigram scores of pieces, by EM over all segmentations (Kudo 2018, section 3.2).

    It starts from equal probabilities. No piece falls below ``floor``, so that every path keeps a probability;
    each step is optimal under this bound, so the likelihood never falls. Byte tokens are not fitted, since the
    tokeniser uses them only for characters without another piece; see `byte_scores`.

    Args:
        inventory: the pieces, with or without scores.
        words: counts of words in the text, spelt in the inventory's alphabet with the marker. Words
            that are not concatenations of pieces are excluded.
        iterations: maximum number of iterations.
        tolerance: stop when the log-likelihood changes by less than this share.
        floor: minimum probability of a piece, less than 1 over the number of pieces.

    Returns:
        (P,) log probabilities, nats; the exponentials of all but byte tokens sum to 1.

    Raises:
        InputError: no word is a concatenation of pieces, or a setting is out of range.
    """
    fitted = np.ones(len(inventory.pieces), dtype=np.bool_)
    if inventory.byte_tokens is not None:
        fitted = ~inventory.byte_tokens
    n = int(fitted.sum())
    if iterations < 1 or not tolerance >= 0.0:
        raise InputError("EM needs at least one iteration and a tolerance of 0 or more")
    if not (floor > 0.0 and floor * n < 1.0):
        raise InputError(f"the minimum probability of a piece must be above 0 and below 1/{n}, not {floor}")
    builder = LatticeBuilder(inventory, uniform_scores(inventory))
    present = [word for word, count in words.items() if count > 0 and word]
    spelled_words = [word for word, fine in zip(present, builder.spells(present).tolist(), strict=True) if fine]
    if not spelled_words:
        raise InputError("none of the words is a concatenation of pieces, so scores cannot be fitted; use other words")
    lattice, bounds = builder.join(spelled_words)
    counts = np.array([words[word] for word in spelled_words], dtype=np.float64)
    scores = np.full(len(fitted), -np.log(n))
    symbols = tuple(itertools.compress(inventory.pieces, ~fitted))
    scores[~fitted] = byte_scores(symbols, math.log(floor))
    before = -math.inf
    with meter("fitting scores of pieces, which propose segmentations, by iteration", iterations) as progress:
        for _ in range(iterations):
            marginal: FloatArray
            marginal, partition = sum_kernels.marginals(
                lattice.first, lattice.source, scores[lattice.piece], 1.0, bounds, counts
            )
            likelihood = float(counts @ partition)  # log of it
            progress.advance(note=f"log-likelihood {likelihood:.6g}")
            if likelihood - before < tolerance * abs(likelihood):
                break
            before = likelihood
            expected = np.bincount(lattice.piece, weights=marginal, minlength=len(fitted)).astype(np.float64)
            scores[fitted] = np.log(_bounded(expected[fitted], floor))
    scores[~fitted] = byte_scores(symbols, float(scores[fitted].min(initial=0.0)))
    return scores


def _bounded(expected: FloatArray, floor: float) -> FloatArray:
    """Compute the probabilities p >= floor with sum 1 that maximise the sum of expected * log p."""
    ascending = np.sort(expected)
    above = np.cumsum(ascending[::-1])[::-1]  # sum of this and all larger ones
    below = np.arange(len(expected))
    rate = above / (1.0 - floor * below)  # expected count for probability 1, with this many at the floor
    held = int(np.argmax(ascending > floor * rate))
    bounded: FloatArray = np.maximum(expected / rate[held], floor)
    return bounded
