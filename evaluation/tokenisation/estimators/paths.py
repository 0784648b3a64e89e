"""Estimators that score segmentations of a text: the best ones, or samples with or without replacement.

After Cao & Rimell (2021), section 3, with the corrections of Kool et al. (2019): samples without replacement need at
least two, and with T* scored separately the estimate stays unbiased. T* is always the canonical tokenisation.

Segmentations come from all paths of a lattice, or from the consistent ones, which segment all tokens of one word in
the same way. Q_cons(T) is the product of Q_b(t) over the word types of a text, not over its tokens: so it sums to
1 over the consistent paths. Their sum P_cons is at most P(D), and equals P(D) if no word with several segmentations
is repeated. They are the paths of a lattice over the concatenated word types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Document, Estimate, every_segmentation_fits
from truesource.evaluation.tokenisation.estimators.blocks import word_ends
from truesource.evaluation.tokenisation.estimators.weights import (
    ScoredSegmentations,
    WeightedSum,
    mean_of_weights,
    score_segmentations,
    sum_of_inclusions,
)
from truesource.evaluation.tokenisation.lattice import Lattice, arc_ends, count_paths
from truesource.evaluation.tokenisation.paths import (
    DistinctPaths,
    Paths,
    canonical_first,
    n_best,
    sample,
    sample_distinct,
)
from truesource.generator.piece_model import PieceInventory, TokenisedModel
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError


class ConsistentPaths:
    """The consistent paths of one lattice, which segment equal words alike.

    A word extends from a marker, or run of markers, to the next (if markers end words, to its end); a word at the
    beginning of a text without a marker is a separate word.

    Args:
        lattice: lattice of a whole text.
        inventory: inventory of its pieces, for their marker.

    Raises:
        InputError: a piece joins two words.
    """

    def __init__(self, lattice: Lattice, inventory: PieceInventory) -> None:
        bounds = np.array([0, *word_ends(lattice.spelling, inventory.marker, marker_ends=inventory.marker_ends)])
        ends = arc_ends(lattice)
        within = np.searchsorted(bounds, lattice.source, side="right") == np.searchsorted(bounds, ends, side="left")
        if not within.all():
            piece = inventory.names[int(lattice.piece[int(np.argmin(within))])]
            raise InputError(f"the piece {piece!r} joins two words, so that words are not segmented one by one")
        spelling = lattice.spelling
        spelt = [spelling[a:b] for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        numbers: dict[str, int] = {}
        self._word: IntArray = np.array([numbers.setdefault(word, len(numbers)) for word in spelt], dtype=np.int64)
        #: word types, in order of their first tokens
        self.words = tuple(numbers)
        self._arc = lattice.first[bounds[:-1] + 1]  # (W,) first arc of each token
        tokens = np.unique(self._word, return_index=True)[1]  # first token of each word type
        arcs = _ranges(self._arc[tokens], np.append(self._arc, len(lattice.source))[tokens + 1])
        lengths = np.diff(bounds)[tokens]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = _ranges(bounds[tokens] + 1, bounds[tokens + 1] + 1)  # (n,) position after each character
        first = np.concatenate([[0, 0], np.cumsum(np.diff(lattice.first)[at])])
        moved = np.repeat(starts[:-1] - bounds[tokens], first[starts[1:] + 1] - first[starts[:-1] + 1])
        #: lattice over the concatenated word types
        self.lattice = Lattice(
            "".join(self.words),
            first,
            (lattice.source[arcs] + moved).astype(np.int32),
            lattice.piece[arcs],
            lattice.score[arcs],
        )
        self._first_arc = first[starts[:-1] + 1]  # (types,) first arc of each word in the lattice above
        self._tokens = tokens

    def expanded(self, paths: Paths) -> Paths:
        """Convert paths of the lattice of word types to paths of the whole text."""
        k, words = len(paths), len(self.words)
        of = np.searchsorted(self._first_arc, paths.arcs, side="right") - 1
        new = np.ones(len(of), dtype=np.bool_)
        new[1:] = of[1:] != of[:-1]
        new[paths.bounds[:-1]] = True
        low = np.flatnonzero(new)
        high = np.append(low[1:], len(of))
        low, high = (edge.reshape(k, words)[:, self._word] for edge in (low, high))
        sizes = high - low
        moved = np.repeat(np.tile(self._arc - self._first_arc[self._word], k), sizes.ravel())
        arcs = paths.arcs[_ranges(low.ravel(), high.ravel())] + moved
        bounds = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
        return Paths(arcs.astype(np.int32), bounds, paths.log_q)

    def reduced(self, path: NDArray[Any]) -> IntArray:
        """Convert a consistent path of the whole text to a path of the lattice of word types.

        Raises:
            InputError: the path segments one word in two ways.
        """
        arcs = np.asarray(path, dtype=np.int64)
        token = np.searchsorted(self._arc, arcs, side="right") - 1
        firsts = self._tokens[self._word[token]] == token
        moved = (self._first_arc[self._word] - self._arc)[token]
        reduced: IntArray = (arcs + moved)[firsts]
        whole = self.expanded(Paths.of([reduced], np.zeros(1))).arcs
        if not np.array_equal(whole, arcs):
            raise InputError("the path to avoid segments a word in two ways")
        return reduced


def _ranges(low: IntArray, high: IntArray) -> IntArray:
    """Concatenate the ranges from each ``low`` to below its ``high``."""
    sizes = high - low
    ends = np.cumsum(sizes)
    numbers: IntArray = np.repeat(low - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)
    return numbers


class Segmentations:
    """The segmentations of a document, weighted by exp(b * score): all paths of its lattice, or the consistent ones."""

    def __init__(
        self, name: str, model: TokenisedModel, document: Document, settings: EstimatorSettings, *, consistent: bool
    ) -> None:
        """Prepare to sample; for consistent segmentations, find the word types.

        Args:
            name: name of the estimator.
            model: model that scores the segmentations.
            document: the text.
            settings: ``samples``, ``b``, ``seed``.
            consistent: True to segment all tokens of a word type in the same way.

        Raises:
            InputError: a piece joins two words, for consistent segmentations.
        """
        self.samples = settings.samples
        self.canonical = document.best
        self._name, self._model, self._document = name, model, document
        self._b, self._seed = settings.b, settings.seed
        self._words = ConsistentPaths(document.lattice, model.pieces.inventory) if consistent else None
        self._lattice = document.lattice if self._words is None else self._words.lattice

    @cached_property
    def n(self) -> int:
        """Number of segmentations."""
        return count_paths(self._lattice)

    @cached_property
    def _all(self) -> bool:
        """True if they include every segmentation of the text, and all fit the model's window."""
        complete = self._words is None or self.n == count_paths(self._document.lattice)
        return complete and every_segmentation_fits(self._model, self._document)

    def best(self, k: int) -> Paths:
        """Return the k segmentations with the largest sums of scores (of word types), or all."""
        return self._of_text(n_best(self._lattice, k))

    def draw(self, k: int, avoid: IntArray | None = None) -> Paths:
        """Sample independently, never the segmentation to avoid."""
        return self._of_text(sample(self._lattice, k, b=self._b, seed=self._seed, avoid=self._avoided(avoid)))

    def draw_distinct(self, k: int, avoid: IntArray | None = None) -> DistinctPaths:
        """Sample without replacement, never the segmentation to avoid."""
        sampled = sample_distinct(self._lattice, k, b=self._b, seed=self._seed, avoid=self._avoided(avoid))
        return replace(sampled, paths=self._of_text(sampled.paths))

    def _of_text(self, paths: Paths) -> Paths:
        return paths if self._words is None else self._words.expanded(paths)

    def _avoided(self, path: IntArray | None) -> IntArray | None:
        return path if path is None or self._words is None else self._words.reduced(path)

    def score(self, segmentations: Sequence[NDArray[np.integer]]) -> ScoredSegmentations:
        """Compute log P of segmentations."""
        return score_segmentations(self._model, self._document, segmentations)

    def summed(self, scored: ScoredSegmentations, *, complete: bool) -> Estimate:
        """Return the estimate from the sum over distinct segmentations, exact or a lower bound."""
        exact = complete and self._all
        return Estimate(
            estimator=self._name,
            log_p=scored.log_lower,
            bound="exact" if exact else "lower",
            relative_variance=0.0 if exact else None,
            log_lower=scored.log_lower,
            steps=scored.steps,
            cuts=scored.distinct,
            log_upper=scored.log_lower if exact else None,
        )

    def weighted(self, scored: ScoredSegmentations, weighted: WeightedSum) -> Estimate:
        """Return the estimate from weights, unbiased for the sum over all of these segmentations."""
        return Estimate(
            estimator=self._name,
            bound="unbiased" if self._all else "part",
            log_lower=scored.log_lower,
            steps=scored.steps,
            cuts=scored.distinct,
            **vars(weighted),
        )


def nbest(source: Segmentations) -> Estimate:
    """Compute the log of the sum of P over the ``samples`` best segmentations, including T*; a lower bound.

    It does not sample, does not depend on b, and does not fall with more segmentations. T* replaces the last of the
    best segmentations if it is not one of them (for scores that do not come from the tokeniser).
    """
    paths = canonical_first(source.canonical, source.best(source.samples).each(), source.samples)
    return source.summed(source.score(paths), complete=source.n <= source.samples)


def wr(source: Segmentations) -> Estimate:
    """Compute the log of the mean of P/Q over ``samples`` independent samples; unbiased in probability."""
    paths = source.draw(source.samples)
    scored = source.score(paths.each())
    return source.weighted(scored, mean_of_weights(scored.log_p - paths.log_q))


def wr1(source: Segmentations) -> Estimate:
    """Add P(T*) and the mean of P/Q over ``samples`` - 1 samples of the others; unbiased in probability."""
    if source.n == 1:
        return source.summed(source.score([source.canonical]), complete=True)
    paths = source.draw(source.samples - 1, source.canonical)
    scored = source.score([source.canonical, *paths.each()])
    return source.weighted(scored, mean_of_weights(scored.log_p[1:] - paths.log_q, float(scored.log_p[0])))


def wor(source: Segmentations) -> Estimate:
    """Sum P/q_kappa over ``samples`` distinct samples; unbiased in probability, exact if these are all."""
    if source.n <= source.samples:
        return source.summed(source.score(source.best(source.n).each()), complete=True)
    sampled = source.draw_distinct(source.samples)
    scored = source.score(sampled.paths.each())
    return source.weighted(scored, sum_of_inclusions(scored.log_p, sampled.log_inclusion))


def wor1(source: Segmentations) -> Estimate:
    """Add P(T*) and the sum of P/q_kappa over ``samples`` - 1 distinct others.

    Unbiased in probability, exact if these are all (Cao & Rimell 2021 call it biased; it is not).
    """
    if source.n <= source.samples:
        return source.summed(source.score(source.best(source.n).each()), complete=True)
    sampled = source.draw_distinct(source.samples - 1, source.canonical)
    scored = source.score([source.canonical, *sampled.paths.each()])
    return source.weighted(scored, sum_of_inclusions(scored.log_p[1:], sampled.log_inclusion, float(scored.log_p[0])))


def one_best(source: Segmentations) -> Estimate:
    """Compute log P(T*) of only the canonical tokenisation: a lower bound of log P(D)."""
    return source.summed(source.score([source.canonical]), complete=source.n == 1)


def distinct(source: Segmentations) -> Estimate:
    """Compute the log of the sum of P over the distinct segmentations among ``samples`` samples: a lower bound."""
    scored = source.score(source.draw(source.samples).each())
    return source.summed(scored, complete=scored.distinct == source.n)
