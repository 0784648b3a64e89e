"""How segmentations of a text's beginning go on through the next block, and what the model gives to each way."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.tokenisation.estimators.blocks import Blocks, Candidates
from truesource.evaluation.tokenisation.estimators.estimate import Document
from truesource.evaluation.tokenisation.estimators.rows import extend, unique_pairs
from truesource.evaluation.tokenisation.estimators.segmentations import check_numbers
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.evaluation.tokenisation.window import reader
from truesource.generator.language_model import TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Moves:
    """R ways to go on through one block from P places; equal places share theirs, but for those drawn from tails."""

    rows: IntArray  #: (P, M) the ways from each place, as numbers below R; -1 after the last
    log_p: FloatArray  #: (R,) log P(the segmentation of the block | what was read before), nats
    log_q: FloatArray  #: (R,) log probability of having been drawn; 0 for a listed segmentation
    cut: IntArray  #: (R,) equal numbers: the same pieces
    before: IntArray  #: (R,) context before the last piece
    token: IntArray  #: (R,) the last piece; -1 where a piece that was read earlier covers the block
    position: IntArray  #: (R,) where the segmentation ends: the end of the block, or after it

    @property
    def log_weights(self) -> FloatArray:
        """(P, M) log of P over the probability of having been drawn; -inf after the last."""
        return np.where(self.rows >= 0, (self.log_p - self.log_q)[self.rows], -math.inf)


class BlockWalk:
    """Reads one document with a model, block after block, by many segmentations at once."""

    def __init__(self, model: TokenisedModel, document: Document, settings: EstimatorSettings, *, tail: bool) -> None:
        """Prepare to read.

        Args:
            model: read through its scorer.
            document: the text.
            settings: ``candidates``, and ``b`` of the tails.
            tail: whether segmentations that are not listed may be drawn.

        Raises:
            InputError: the model's window is too short for the canonical tokenisation.
        """
        self.scorer = reader(model, document)
        self.blocks = Blocks(document, model.pieces.inventory, settings, tail=tail)
        self.whole = True  #: whether no segmentation of any block met so far was left out
        self.unlisted = 0.0  #: sum over blocks of the squared shares of Q_b that are not listed
        self.scored = 0  #: segmentations of blocks scored, each in its context

    def moves(self, context: IntArray, position: IntArray, end: int, rng: np.random.Generator | None = None) -> Moves:
        """The ways through the block that ends at ``end``.

        Args:
            context: (P,) of each place.
            position: (P,) characters read.
            end: of the block.
            rng: draws one unlisted segmentation for each place that has some; None: only listed segmentations.

        Raises:
            InputError: the probability of a segmentation is no number.
        """
        places, of = unique_pairs(context, position)
        known = {entry: self.blocks.candidates(entry, end) for entry in np.unique(position).tolist()}
        lists: list[Candidates] = [known[entry] for entry in places[:, 1].tolist()]
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
            drawing = np.flatnonzero([known[entry].tail is not None for entry in position.tolist()])
            drawn = [tail.draw(rng) for entry in position[drawing].tolist() if (tail := known[entry].tail) is not None]
            extra = np.full((len(context), 1), -1, dtype=np.int64)
            extra[drawing, 0] = len(cuts) + np.arange(len(drawing))
            rows = np.hstack([rows, extra])
            start = np.concatenate([start, context[drawing]])
            position_after = np.concatenate(
                [position_after, position[drawing] + np.array([d.size for d in drawn], int)]
            )
            log_q = np.concatenate([log_q, [d.log_q for d in drawn]])
            cuts += [d.tokens for d in drawn]
        tokens = _padded(cuts)
        log_p, before = self._score(start, tokens)
        self.scored += len(log_p)
        lengths = (tokens >= 0).sum(axis=1)
        last = np.append(tokens, np.full((len(tokens), 1), -1), axis=1)[np.arange(len(tokens)), lengths - 1]
        cut = np.unique(tokens, axis=0, return_inverse=True)[1].reshape(-1)
        return Moves(rows=rows, log_p=log_p, log_q=log_q, cut=cut, before=before, token=last, position=position_after)

    def advance(self, moves: Moves, rows: IntArray, kept: IntArray | None = None) -> IntArray:
        """(K,) contexts after some ways, given by number; all contexts but these, and ``kept``, are forgotten."""
        context = moves.before[rows].copy()
        on = np.flatnonzero(moves.token[rows] >= 0)
        context[on] = extend(self.scorer, context[on], moves.token[rows][on])
        self.scorer.keep(np.unique(context if kept is None else np.concatenate([context, kept])))
        return context

    def score_ends(self, context: IntArray) -> FloatArray:
        """(K,) log probability that the text ends after each context, nats."""
        log_p = self.scorer.log_end(context) if len(context) else np.empty(0)
        check_numbers(log_p)
        return log_p

    def _score(self, context: IntArray, tokens: IntArray) -> tuple[FloatArray, IntArray]:
        """Log P of each row, (R,), and the context before its last piece; each common beginning is run once."""
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
    """(R, L) rows; -1 after the last piece of each."""
    lengths = np.array([len(cut) for cut in cuts])
    tokens = np.full((len(cuts), lengths.max()), -1, dtype=np.int64)
    tokens[np.arange(lengths.max()) < lengths[:, None]] = np.concatenate(cuts)
    return tokens
