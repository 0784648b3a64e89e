"""Probabilities of words under models of pieces, summed over the segmentations of each word.

Where pieces carry a mark at the beginnings of words, that a word is over is told by what comes next (Pimentel & Meister
2024; Oh & Schuler 2024). With w_1..w_t the words so far and B the probability that what follows begins a word or ends
the text::

    S_t = sum over segmentations of w_1..w_t of P(segmentation) * B(segmentation)       p(w_t | w_1..w_{t-1}) = S_t /
    S_{t-1}       S_0 = 1 p(end | w_1..w_T) = P(D) / S_T

Nothing is divided by at the start, so words and end add up to log P(D). At any later place the probabilities of all
words and of the end sum to 1. What the model gives to special tokens is lost to B. Where the mark ends words, B is 1.
With one segmentation T* in place of the sum, words and end add up to log P(T*), and the probabilities of words to less
than 1. Where segmentations of a text do not fit the model's window, the sums are over the beginnings of segmentations
that do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from truesource.evaluation.tokenisation.estimators.blocks import arc_ends, word_ends
from truesource.evaluation.tokenisation.estimators.estimate import Document
from truesource.evaluation.tokenisation.estimators.particle_filter import Filter, Particles, resampled
from truesource.evaluation.tokenisation.estimators.rows import extend
from truesource.evaluation.tokenisation.estimators.segmentations import check_numbers
from truesource.evaluation.tokenisation.estimators.walk import BlockWalk
from truesource.evaluation.tokenisation.estimators.weights import log_sum
from truesource.evaluation.tokenisation.marginal import count_paths
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.evaluation.tokenisation.window import check_window, every_segmentation_fits
from truesource.generator.language_model import IncrementalScorer, PieceInventory, TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError


@dataclass(frozen=True)
class WordProbabilities:
    """Of the words of one text, each given those before it."""

    words: tuple[str, ...]  #: (W,) as the tokeniser spells them, without marks
    log_p: FloatArray  #: (W,) nats; minus these are surprisals
    log_end: float | None  #: of the end of the text after the last word, nats; None: the model has no end
    exact: bool  #: whether all segmentations were summed: of the words, and of their contexts unless ``one-best``
    steps: int  #: token-steps of the model


def word_log_probs(
    model: TokenisedModel,
    document: Document,
    settings: EstimatorSettings,
    *,
    contexts: Literal["all", "one-best"] = "all",
) -> WordProbabilities:
    """Log probability of every word of a text given those before it, summed over its segmentations.

    Args:
        model: of pieces.
        document: split at white space: no piece reaches from one word into the next.
        settings: of the discrete particle filter that sums over segmentations; ``candidates`` segmentations of a word
            are listed, and one more is drawn if ``tail``. Where it leaves nothing out, values are exact. Sums of
            ``replicates`` filters are averaged before their ratios are taken.
        contexts: ``all``: what stands before a word is in all its segmentations, as the words say; ``one-best``: in the
            tokeniser's canonical tokenisation alone, as a reader of that segmentation would have it.

    Raises:
        InputError: a piece reaches from one word into the next, the model gives the text probability zero or its
            window is too short for the segmentations.
    """
    reader = _Reader(model, document, settings)
    return reader.after_all() if contexts == "all" else reader.after_best()


def canonical_log_probs(model: TokenisedModel, document: Document) -> WordProbabilities:
    """Log probability of every word given those before it, all in the canonical tokenisation alone.

    As is usually reported of models of pieces, with the same account of what follows a word.

    Args:
        model: of pieces.
        document: split at white space.

    Raises:
        InputError: a piece reaches from one word into the next, the model gives the segmentation probability zero or
            its window is too short for it.
    """
    check_window(model, document)
    scorer, inventory = model.incremental_scorer(), model.pieces.inventory
    ends = _word_ends(document, inventory)
    contexts, log_p = _read_canonical(scorer, document, inventory.ids, ends)
    sums = np.append(0.0, log_p[1:] + _Boundary(scorer, inventory, has_end=model.around[1] > 0)(contexts[1:]))
    last = float((log_p[-1:] + scorer.log_end(contexts[-1:]))[0])
    check_numbers(np.append(sums, last))
    if not (np.isfinite(sums).all() and math.isfinite(last)):
        raise _impossible()
    return WordProbabilities(
        _words(document, inventory, ends),
        np.diff(sums),
        last - float(sums[-1]) if model.around[1] else None,
        count_paths(document.lattice) == 1,
        scorer.steps,
    )


class _Boundary:
    """(P,) log probability that what follows contexts begins a word or ends the text."""

    def __init__(self, scorer: IncrementalScorer, inventory: PieceInventory, *, has_end: bool) -> None:
        self._scorer, self._has_end = scorer, has_end
        self._opening = None
        if not inventory.marker_ends:
            self._opening = inventory.ids[[piece.startswith(inventory.marker) for piece in inventory.pieces]]

    def __call__(self, contexts: IntArray) -> FloatArray:
        if self._opening is None or not len(contexts):
            return np.zeros(len(contexts))
        places, of = np.unique(contexts, return_inverse=True)
        found = self._scorer.log_any(places, self._opening)
        if self._has_end:
            found = np.logaddexp(found, self._scorer.log_end(places))
        return found[of.reshape(-1)]


def _word_ends(document: Document, inventory: PieceInventory) -> list[int]:
    return word_ends(document.lattice.spelling, inventory.marker, marker_ends=inventory.marker_ends)


def _words(document: Document, inventory: PieceInventory, ends: Sequence[int]) -> tuple[str, ...]:
    """(W,) spellings without marks."""
    return tuple(
        document.lattice.spelling[low:high].strip(inventory.marker) for low, high in itertools.pairwise([0, *ends])
    )


def _read_canonical(
    scorer: IncrementalScorer, document: Document, ids: IntArray, ends: Sequence[int]
) -> tuple[IntArray, FloatArray]:
    """(W+1,) contexts before and after each word of the canonical tokenisation, and log P of all pieces before."""
    arcs = document.best
    context, total = np.array([scorer.begin()]), 0.0
    contexts, sums = [int(context[0])], [0.0]
    whole = set(ends)
    for token, stop in zip(ids[document.lattice.piece[arcs]], arc_ends(document.lattice)[arcs].tolist(), strict=True):
        total += float(scorer.log_prob(context, token[None])[0])
        context = extend(scorer, context, token[None])
        if stop in whole:
            contexts.append(int(context[0]))
            sums.append(total)
    if len(contexts) != len(ends) + 1:
        raise _no_words()
    return np.array(contexts), np.array(sums)


class _Reader:
    """Reads the words of one document."""

    def __init__(self, model: TokenisedModel, document: Document, settings: EstimatorSettings) -> None:
        self._inventory = model.pieces.inventory
        self._document = document
        self._has_end = model.around[1] > 0
        self._fits = every_segmentation_fits(model, document)
        self._walk = BlockWalk(model, document, settings, tail=settings.tail)
        rng = np.random.default_rng(settings.seed)
        most, n = settings.particles, max(1, settings.replicates)
        self._filter = Filter(self._walk, lambda log_w: resampled(log_w, most, rng), rng if settings.tail else None, n)
        self._ends = _word_ends(document, self._inventory)
        self._words = _words(document, self._inventory, self._ends)
        self._boundary = _Boundary(self._walk.scorer, self._inventory, has_end=self._has_end)

    def after_all(self) -> WordProbabilities:
        sums = [0.0]
        for end, particles in zip(self._walk.blocks.ends, self._filter.run(), strict=True):
            if end in self._ends:
                sums.append(self._log_sum(particles, end))
        ends = self._walk.score_ends(particles.context)
        total = log_sum(particles.log_w + ends) - math.log(self._filter.filters)
        return self._result(np.diff(sums), total - sums[-1])

    def after_best(self) -> WordProbabilities:
        contexts, _ = _read_canonical(self._walk.scorer, self._document, self._inventory.ids, self._ends)
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

    def _log_sum(self, particles: Particles, end: int) -> float:
        """Log of the mean over filters of the sum of the weights, each with what follows a whole word."""
        if (particles.position != end).any():
            raise _no_words()
        total = log_sum(particles.log_w + self._boundary(particles.context)) - math.log(self._filter.filters)
        if total == -math.inf:
            raise _impossible() if self._fits else _all_too_long()
        return total

    def _result(self, log_p: FloatArray, log_end: float) -> WordProbabilities:
        return WordProbabilities(
            self._words, log_p, log_end if self._has_end else None,
            self._fits and self._walk.whole and not self._filter.reduced, self._walk.scorer.steps,
        )  # fmt: skip


def _impossible() -> InputError:
    return InputError("the model gives the text probability zero, so that its words have none")


def _all_too_long() -> InputError:
    return InputError(
        "all prefixes of segmentations that were followed are longer than the model reads, or have probability zero;"
        " divide the text, or follow more of them with --particles"
    )


def _no_words() -> InputError:
    return InputError(
        "a piece reaches from one word into the next, so words are not segmented on their own and have no probabilities"
    )
