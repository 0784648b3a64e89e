"""Texts in blocks, the most likely segmentations of each block, and the walk of a model through them.

A block is a word; a word of more than `LONGEST_BLOCK` characters, or a text without white space, is divided into
several blocks, with cuts through as few pieces as possible. A piece may reach over the end of a block: a segmentation
of the block then ends beyond it, and the next block is entered there, so every segmentation of the text is a
segmentation of its blocks in exactly one way. If the lattice factorises at white space, no piece reaches over
(Chirkova et al. 2023 treat only this case).

Unlisted segmentations are sampled with known probability (`Tail`): adding one of them with weight 1/q to a
list of the best segmentations makes the weighted sum an unbiased estimate of the sum over all segmentations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Document, reader
from truesource.evaluation.tokenisation.estimators.weights import check_numbers, extend, unique_pairs
from truesource.evaluation.tokenisation.lattice import Lattice, arc_ends, count_paths, forward
from truesource.evaluation.tokenisation.paths import n_best
from truesource.generator.piece_model import PieceInventory, TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray

LEAST_MASS = 1e-6  #: minimum mass of unlisted segmentations, which subtraction computes to some ten digits
ROUNDING = 1e-15  #: rounding error of subtracted masses, as a share of the mass of all paths to a position
LONGEST_BLOCK = 20  #: maximum length of a block, characters


@dataclass(frozen=True)
class Candidates:
    """The segmentations of a stretch of text with the largest sums of scores, best first, and the canonical one.

    If the canonical tokenisation is not one of the best, it replaces the last of them: it is what a model
    was trained on, whatever the scores (for a BPE vocabulary, they are fitted).
    """

    tokens: tuple[IntArray, ...]  #: (M,) token numbers of the pieces of each segmentation
    sizes: IntArray  #: (M,) characters that each segmentation covers; all equal if no piece reaches over the end
    whole: bool  #: True if every segmentation of the stretch is listed
    tail: Tail | None  #: samples one of the others; None: there are none, or they are not requested


class Blocks:
    """The blocks of one document; segmentations are computed once for each distinct stretch."""

    def __init__(
        self, document: Document, inventory: PieceInventory, settings: EstimatorSettings, *, tail: bool
    ) -> None:
        """Divide a document.

        Args:
            document: its lattice gives the segmentations and the scores that rank them.
            inventory: inventory of the model's tokeniser.
            settings: ``candidates`` segmentations of a block are listed; tails use inverse temperature ``b``.
            tail: True if unlisted segmentations can be sampled.
        """
        self.lattice = document.lattice
        self.ends = block_ends(self.lattice, inventory.marker, marker_ends=inventory.marker_ends)
        self._ids = inventory.ids
        self._most = max(1, settings.candidates)
        self._b = settings.b
        self._with_tail = tail
        self._own = document.best
        self._candidates: dict[tuple[int, bytes, bytes, bytes], Candidates] = {}
        self.stop = arc_ends(self.lattice)  #: (A,) position where each arc of the document ends
        self._reach = int((self.stop - self.lattice.source).max(initial=0))

    def candidates(self, entry: int, end: int) -> Candidates:
        """Return segmentations from position ``entry`` to their first position at or after ``end``."""
        if entry >= end:  # a piece covers all of this block
            return Candidates((np.empty(0, dtype=np.int64),), np.zeros(1, dtype=np.int64), True, None)
        low, high = self.lattice.first[entry + 1], self.lattice.first[min(end + self._reach, self.lattice.n) + 1]
        arcs = np.arange(low, high)
        arcs = arcs[(self.lattice.source[low:high] >= entry) & (self.lattice.source[low:high] < end)]
        source = self.lattice.source[arcs] - entry
        canonical = self._canonical(entry, end)
        piece = self.lattice.piece
        key = (end - entry, source.tobytes(), piece[arcs].tobytes(), piece[canonical].tobytes())
        if key not in self._candidates:
            self._candidates[key] = self._find(entry, end, arcs, canonical)
        return self._candidates[key]

    def _canonical(self, entry: int, end: int) -> IntArray:
        """Return the part of the canonical tokenisation that covers a stretch; empty unless a piece begins there."""
        source = self.lattice.source[self._own]
        stretch_arcs = self._own[(source >= entry) & (source < end)]
        return stretch_arcs if len(stretch_arcs) and self.lattice.source[stretch_arcs[0]] == entry else stretch_arcs[:0]

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


def word_ends(spelling: str, marker: str, *, marker_ends: bool) -> list[int]:
    """Return positions between words, and the end of the text; a run of markers counts once."""
    marked = np.array([character == marker for character in spelling])
    if marker_ends:
        inner = np.flatnonzero(marked[:-1] & ~marked[1:]) + 1
    else:
        inner = np.flatnonzero(marked[1:] & ~marked[:-1]) + 1
    return [*inner.tolist(), len(spelling)]


def block_ends(lattice: Lattice, marker: str, *, marker_ends: bool) -> list[int]:
    """Return positions where the blocks of a text end."""
    over = np.zeros(lattice.n + 1, dtype=np.int64)  # number of arcs that begin before a position and end after it
    np.add.at(over, lattice.source + 1, 1)
    np.add.at(over, arc_ends(lattice), -1)
    over = np.cumsum(over)
    words = [0, *word_ends(lattice.spelling, marker, marker_ends=marker_ends)]
    ends = []
    for low, high in itertools.pairwise(words):
        parts = -(-(high - low) // LONGEST_BLOCK)
        for part in range(1, parts):
            centre = low + part * (high - low) // parts
            ends.append(min(range(centre - 3, centre + 4), key=lambda i: (over[i], abs(i - centre))))
        ends.append(high)
    return ends


def _stretch(lattice: Lattice, stop: IntArray, entry: int, end: int, arcs: IntArray) -> tuple[Lattice, IntArray]:
    """Build the lattice between two positions, and the numbers of its arcs in the whole lattice.

    Arcs that reach over ``end`` end there; arcs that no path from ``entry`` reaches are removed.
    """
    reached = np.zeros(lattice.n + 1, dtype=bool)
    reached[entry] = True
    reachable = []
    for arc in arcs.tolist():  # by end, so all arcs into a position come before the arcs out of it
        if reached[lattice.source[arc]]:
            reached[stop[arc]] = True
            reachable.append(arc)
    arcs = np.array(reachable, dtype=np.int64)
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


class _Fork(NamedTuple):
    """The arcs that can be sampled at one position, given the sampled arcs to its right."""

    arcs: IntArray  #: (D,)
    cumulative: FloatArray  #: (D,) the last is 1
    log_q: FloatArray  #: (D,)


class SampledSegmentation(NamedTuple):
    """A sampled segmentation."""

    tokens: IntArray  #: token numbers of its pieces
    size: int  #: characters that it covers
    log_q: float  #: log probability of being sampled, nats


class Tail:
    """A sampler of unlisted segmentations in proportion to Q_b.

    Backward sampling that subtracts from each arc the mass of the listed segmentations that agree with the arcs sampled
    so far (with one listed segmentation, this is the flagged backward pass). If unlisted segmentations have
    hardly any mass, b is halved until they do. Exact counts of segmentations show which arcs remain, so every
    unlisted segmentation can be sampled.
    """

    def __init__(
        self, lattice: Lattice, listed: Sequence[NDArray[np.integer]], b: float, ids: IntArray, stop: IntArray
    ) -> None:
        """Prepare to sample.

        Args:
            lattice: lattice of the stretch of text.
            listed: arcs of the listed segmentations, which are never sampled; not all segmentations of the lattice.
            b: inverse temperature.
            ids: token number of each arc's piece, (A,).
            stop: characters from the beginning of the stretch to the end of each arc's piece, (A,).
        """
        self._lattice, self._ids, self._stop = lattice, ids, stop
        self._listed = [cut.tolist() for cut in listed]
        self._counts = _path_counts(lattice)
        self._b = b
        self._prepare()
        self.mass = math.exp(self._log_unlisted())  #: unlisted share of Q_b, 0 to 1
        while self._log_unlisted() < math.log(LEAST_MASS):
            self._b /= 2.0
            self._prepare()
        self._forks: dict[tuple[int, int, tuple[int, ...]], _Fork] = {}

    def _prepare(self) -> None:
        self._forward = forward(self._lattice, self._b)
        scores = self._b * self._lattice.score
        self._sums = [np.cumsum(scores[cut]) for cut in self._listed]

    def _log_unlisted(self) -> float:
        """Compute the log of the share of unlisted segmentations."""
        left = -math.expm1(float(logsumexp([sums[-1] for sums in self._sums])) - self._forward[-1])
        return math.log(left) if left > 0.0 else -math.inf

    def draw(self, rng: np.random.Generator) -> SampledSegmentation:
        """Sample one segmentation."""
        at, depth, log_q = self._lattice.n, 0, 0.0
        agreeing = tuple(range(len(self._listed)))  # listed segmentations with all arcs sampled so far
        arcs: list[int] = []
        while at > 0:
            fork = self._fork(at, depth, agreeing)
            choice = int(np.searchsorted(fork.cumulative, rng.random(), side="right"))
            arc = int(fork.arcs[choice])
            log_q += float(fork.log_q[choice])
            arcs.append(arc)
            agreeing = tuple(i for i in agreeing if depth < len(self._listed[i]) and self._listed[i][-1 - depth] == arc)
            at, depth = int(self._lattice.source[arc]), depth + 1
        return SampledSegmentation(self._ids[arcs[::-1]], int(self._stop[arcs[0]]), log_q)

    def _fork(self, at: int, depth: int, agreeing: tuple[int, ...]) -> _Fork:
        key = (at, depth, agreeing)
        if key not in self._forks:
            low, high = self._lattice.first[at], self._lattice.first[at + 1]
            arcs = np.arange(low, high)
            top = self._forward[at]
            mass = np.exp(self._forward[self._lattice.source[arcs]] + self._b * self._lattice.score[arcs] - top)
            left = [self._counts[source] for source in self._lattice.source[arcs].tolist()]
            for i in agreeing:
                arc = self._listed[i][-1 - depth] - low
                mass[arc] -= math.exp(self._sums[i][-1 - depth] - top)
                left[arc] -= 1
            some = np.array([n > 0 for n in left])
            arcs, mass = arcs[some], np.maximum(mass[some], ROUNDING)
            mass /= mass.sum()
            cumulative = np.cumsum(mass)
            self._forks[key] = _Fork(arcs, cumulative / cumulative[-1], np.log(mass))
        return self._forks[key]


def _path_counts(lattice: Lattice) -> list[int]:
    """Count the paths to each position, in integers of any size."""
    counts = [1]
    sources = lattice.source.tolist()
    for at in range(1, lattice.n + 1):
        counts.append(sum(counts[source] for source in sources[lattice.first[at] : lattice.first[at + 1]]))
    return counts


@dataclass(frozen=True, kw_only=True)
class Moves:
    """The R segmentations of one block from P states; equal states share them, except those sampled from tails."""

    rows: IntArray  #: (P, M) segmentations from each state, as numbers below R; -1 after the last
    log_p: FloatArray  #: (R,) log P(the segmentation of the block | the text before), nats
    log_q: FloatArray  #: (R,) log probability of being sampled; 0 for a listed segmentation
    cut: IntArray  #: (R,) equal numbers: the same pieces
    before: IntArray  #: (R,) context before the last piece
    token: IntArray  #: (R,) the last piece; -1 if an earlier piece covers the block
    position: IntArray  #: (R,) where the segmentation ends: the end of the block, or after it

    @property
    def log_weights(self) -> FloatArray:
        """Log of P over the probability of being sampled, (P, M); -inf after the last."""
        return np.where(self.rows >= 0, (self.log_p - self.log_q)[self.rows], -math.inf)


class BlockWalk:
    """A reader of one document with a model, block after block, by many segmentations at once."""

    def __init__(self, model: TokenisedModel, document: Document, settings: EstimatorSettings, *, tail: bool) -> None:
        """Prepare to read.

        Args:
            model: model, read through its scorer.
            document: the text.
            settings: ``candidates``, and ``b`` for the tails.
            tail: True if unlisted segmentations may be sampled.

        Raises:
            InputError: the model's window is too short for the canonical tokenisation.
        """
        self.scorer = reader(model, document)
        self.blocks = Blocks(document, model.pieces.inventory, settings, tail=tail)
        self.whole = True  #: True if no segmentation of any block so far was excluded
        self.unlisted = 0.0  #: sum over blocks of the squared unlisted shares of Q_b
        self.scored = 0  #: segmentations of blocks scored, each in its context

    def moves(self, context: IntArray, position: IntArray, end: int, rng: np.random.Generator | None = None) -> Moves:
        """Extend segmentations through the block that ends at ``end``.

        Args:
            context: context of each state, (P,).
            position: characters read, (P,).
            end: end of the block.
            rng: samples one unlisted segmentation for each state that has some; None: only listed segmentations.

        Raises:
            InputError: the probability of a segmentation is not a number.
        """
        places, of = unique_pairs(context, position)
        candidates_at = {entry: self.blocks.candidates(entry, end) for entry in np.unique(position).tolist()}
        lists: list[Candidates] = [candidates_at[entry] for entry in places[:, 1].tolist()]
        counts = np.array([len(listed.sizes) for listed in lists])
        self.whole &= all(listed.whole for listed in lists)
        self.unlisted += max(listed.tail.mass if listed.tail else 0.0 for listed in lists) ** 2
        cuts = [cut for listed in lists for cut in listed.tokens]
        start = np.repeat(places[:, 0], counts)
        position_after = np.concatenate(
            [entry + listed.sizes for entry, listed in zip(places[:, 1], lists, strict=True)]
        )
        column = np.arange(counts.max())
        rows = np.where(column < counts[:, None], (np.cumsum(counts) - counts)[:, None] + column, -1)[of]
        log_q = np.zeros(len(cuts))
        if rng is not None:
            tails = [candidates_at[entry].tail for entry in position.tolist()]
            drawing = np.flatnonzero([tail is not None for tail in tails])
            sampled = [tail.draw(rng) for tail in tails if tail is not None]
            extra = np.full((len(context), 1), -1, dtype=np.int64)
            extra[drawing, 0] = len(cuts) + np.arange(len(drawing))
            rows = np.hstack([rows, extra])
            start = np.concatenate([start, context[drawing]])
            position_after = np.concatenate(
                [position_after, position[drawing] + np.array([d.size for d in sampled], int)]
            )
            log_q = np.concatenate([log_q, [d.log_q for d in sampled]])
            cuts += [d.tokens for d in sampled]
        tokens = _padded(cuts)
        log_p, before = self._score(start, tokens)
        self.scored += len(log_p)
        lengths = (tokens >= 0).sum(axis=1)
        last = np.append(tokens, np.full((len(tokens), 1), -1), axis=1)[np.arange(len(tokens)), lengths - 1]
        cut = np.unique(tokens, axis=0, return_inverse=True)[1].reshape(-1)
        return Moves(rows=rows, log_p=log_p, log_q=log_q, cut=cut, before=before, token=last, position=position_after)

    def advance(self, moves: Moves, rows: IntArray) -> IntArray:
        """Return the contexts after segmentations given by number, (K,); all other contexts are forgotten."""
        context = moves.before[rows].copy()
        on = np.flatnonzero(moves.token[rows] >= 0)
        context[on] = extend(self.scorer, context[on], moves.token[rows][on])
        self.scorer.keep(np.unique(context))
        return context

    def score_ends(self, context: IntArray) -> FloatArray:
        """Compute the log probability that the text ends after each context, (K,) nats."""
        log_p = self.scorer.log_end(context) if len(context) else np.empty(0)
        check_numbers(log_p)
        return log_p

    def _score(self, context: IntArray, tokens: IntArray) -> tuple[FloatArray, IntArray]:
        """Compute log P of each row, (R,), and the context before its last piece; common prefixes run once."""
        log_p = np.zeros(len(tokens))
        here = context.copy()
        for depth in range(tokens.shape[1]):
            on = np.flatnonzero((tokens[:, depth] >= 0) & (log_p > -math.inf))
            if depth:
                here[on] = extend(self.scorer, here[on], tokens[on, depth - 1])
            log_p[on] += self.scorer.log_prob(here[on], tokens[on, depth])
        check_numbers(log_p)
        return log_p, here


def _padded(cuts: list[IntArray]) -> IntArray:
    """Pad rows to (R, L) with -1."""
    lengths = np.array([len(cut) for cut in cuts])
    tokens = np.full((len(cuts), lengths.max()), -1, dtype=np.int64)
    tokens[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate(cuts)
    return tokens
