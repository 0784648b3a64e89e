"""Probabilities of words under models of pieces, summed over the cuts of each word.

Where pieces carry a mark at the beginnings of words, that a word is over is told by what comes next (Pimentel & Meister
2024; Oh & Schuler 2024). With w_1..w_t the words so far and B the probability that what follows begins a word or ends
the text::

    S_t = sum over cuts of w_1..w_t of P(cut) * B(cut)       p(w_t | w_1..w_{t-1}) = S_t / S_{t-1}       S_0 = 1
    p(end | w_1..w_T) = P(D) / S_T

Nothing is divided by at the start, so words and end add up to log P(D). At any later place the probabilities of all
words and of the end sum to 1. What the model gives to special tokens is lost to B. Where the mark ends words, B is 1.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import logsumexp

from evaluation.tokenisation.estimate import Document, Settings
from evaluation.tokenisation.estimators.blocks import word_ends
from evaluation.tokenisation.estimators.particle_filter import Filter, Particles, resampled
from evaluation.tokenisation.estimators.rows import extend
from evaluation.tokenisation.estimators.walk import BlockWalk
from evaluation.tokenisation.estimators.weights import log_sum
from generator.piece_model import Floats, Ints, PieceInventory, TokenisedModel
from grammar.errors import InputError

CHUNK = 2**20  #: log probabilities asked for at once


@dataclass(frozen=True)
class WordProbabilities:
    """Of the words of one text, each given those before it."""

    words: tuple[str, ...]  #: (W,) as the tokeniser spells them, without marks
    log_p: Floats  #: (W,) nats; minus these are surprisals
    log_end: float | None  #: of the end of the text after the last word, nats; None: the model has no end
    exact: (
        bool  #: whether no cut was left out: of the words, and of what stands before them unless that is ``one-best``
    )
    steps: int  #: token-steps of the model


def word_log_probs(
    model: TokenisedModel,
    document: Document,
    settings: Settings,
    *,
    contexts: Literal["all", "one-best"] = "all",
) -> WordProbabilities:
    """Log probability of every word of a text given those before it, summed over its cuts.

    Args:
        model: of pieces.
        document: cut at white space: no piece reaches from one word into the next.
        settings: of the discrete particle filter that sums over cuts; ``candidates`` cuts of a word are listed, and one
            more is drawn if ``tail``. Where it leaves nothing out, values are exact. Sums of ``replicates`` filters are
            averaged before their ratios are taken.
        contexts: ``all``: what stands before a word is in all its cuts, as the words say; ``one-best``: in the
            tokeniser's own cut alone, as a reader of that cut would have it.

    Raises:
        InputError: a piece reaches from one word into the next, the model gives the text probability zero or its
            window is too short for the cuts.
    """
    reader = _Reader(model, document, settings)
    return reader.after_all() if contexts == "all" else reader.after_best()


class _Reader:
    """Reads the words of one document."""

    def __init__(self, model: TokenisedModel, document: Document, settings: Settings) -> None:
        self._inventory = model.pieces.inventory
        self._document = document
        self._has_end = model.around[1] > 0
        self._walk = BlockWalk(model, document, settings, tail=settings.tail)
        rng = np.random.default_rng(settings.seed)
        most, n = settings.particles, max(1, settings.replicates)
        self._filter = Filter(self._walk, lambda log_w: resampled(log_w, most, rng), rng if settings.tail else None, n)
        spelling, marker = document.lattice.spelling, self._inventory.marker
        self._ends = word_ends(spelling, marker, marker_ends=self._inventory.marker_ends)
        self._words = tuple(spelling[a:b].strip(marker) for a, b in itertools.pairwise([0, *self._ends]))
        self._opening = None if self._inventory.marker_ends else _opening(self._inventory)

    def after_all(self) -> WordProbabilities:
        sums = [0.0]
        for end, particles in zip(self._walk.blocks.ends, self._filter.run(), strict=True):
            if end in self._ends:
                sums.append(self._log_sum(particles, end))
        ends = self._walk.score_ends(particles.context)
        total = log_sum(particles.log_w + ends) - math.log(self._filter.filters)
        return self._result(np.diff(sums), total - sums[-1])

    def after_best(self) -> WordProbabilities:
        contexts = self._best_contexts()
        boundaries = self._boundary(contexts)
        self._filter.kept = contexts
        found = []
        blocks = self._walk.blocks.ends
        for t, (start, end) in enumerate(itertools.pairwise([0, *self._ends])):
            now = Particles.at(contexts[t], start, self._filter.filters)
            for stop in (block for block in blocks if start < block <= end):
                now = self._filter.through(now, stop, reduce=stop < end)
            found.append(self._log_sum(now, end) - (boundaries[t] if t else 0.0))
        last = self._walk.score_ends(contexts[-1:])[0] - boundaries[-1]
        return self._result(np.array(found), float(last))

    def _best_contexts(self) -> Ints:
        """(W+1,) contexts before and after each word of the tokeniser's own cut."""
        arcs = self._document.best
        walker = self._walk.walker
        stops = self._walk.blocks.stop[arcs].tolist()
        context = np.array([walker.begin()])
        found = [int(context[0])]
        for token, stop in zip(self._inventory.ids[self._document.lattice.piece[arcs]], stops, strict=True):
            context = extend(walker, context, token[None])
            if stop in self._ends:
                found.append(int(context[0]))
        if len(found) != len(self._ends) + 1:
            raise _no_words()
        return np.array(found)

    def _log_sum(self, particles: Particles, end: int) -> float:
        """Log of the mean over filters of the sum of the weights, each with what follows a whole word."""
        if (particles.position != end).any():
            raise _no_words()
        total = log_sum(particles.log_w + self._boundary(particles.context)) - math.log(self._filter.filters)
        if total == -math.inf:
            raise InputError("the model gives the text probability zero, so that its words have none")
        return total

    def _boundary(self, contexts: Ints) -> Floats:
        """(P,) log probability that what follows begins a word or ends the text."""
        if self._opening is None or not len(contexts):
            return np.zeros(len(contexts))
        walker = self._walk.walker
        places, of = np.unique(contexts, return_inverse=True)
        rows = max(1, CHUNK // len(self._opening))
        parts = []
        for low in range(0, len(places), rows):
            some = places[low : low + rows]
            asked = np.repeat(some, len(self._opening)), np.tile(self._opening, len(some))
            parts.append(logsumexp(walker.log_prob(*asked).reshape(len(some), -1), axis=1))
        found: Floats = np.concatenate(parts)
        if self._has_end:
            found = np.logaddexp(found, self._walk.score_ends(places))
        return found[of.reshape(-1)]

    def _result(self, log_p: Floats, log_end: float) -> WordProbabilities:
        return WordProbabilities(
            self._words, log_p, log_end if self._has_end else None,
            self._walk.whole and not self._filter.reduced, self._walk.walker.steps,
        )  # fmt: skip


def _opening(inventory: PieceInventory) -> Ints:
    """The model's numbers of the pieces that begin a word."""
    return inventory.ids[[piece.startswith(inventory.marker) for piece in inventory.pieces]]


def _no_words() -> InputError:
    return InputError(
        "a piece reaches from one word into the next, so that words are not cut on their own and have no probabilities"
    )
