"""Estimators that score some segmentations of a text: the best ones, draws with replacement, draws without.

After Cao & Rimell (2021), section 3, with the corrections of Kool et al. (2019): draws without replacement need at
least two, and with T* taken apart the estimate stays unbiased. In all of them T* is the canonical tokenisation.

Segmentations come from all paths of a lattice, or from the consistent ones, which segment all tokens of one word in
the same way. Q_cons(T) is the product of Q_b(t) over the different words of a text, not over its tokens: so it sums to
1 over the consistent paths. Their sum P_cons is at most P(D), and is P(D) where no word that has several segmentations
comes twice. They are the paths of a lattice over the different words written one after the other.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Bound, Document, Estimate, every_segmentation_fits, narrowed
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
    Method,
    Paths,
    canonical_first,
    n_best,
    sample,
    sample_distinct,
)
from truesource.generator.language_model import PieceInventory, TokenisedModel
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError


class SegmentationSource(Protocol):
    """Source of segmentations: all paths of a lattice, or those with one segmentation for each word."""

    @property
    def whole(self) -> Bound:
        """Bound on P(D) that a sum over all of its segmentations is."""

    @property
    def drawn(self) -> Bound:
        """Bound on P(D) that an unbiased estimate of that sum is."""

    def count(self) -> int:
        """Number of segmentations."""

    def best(self, k: int) -> Paths:
        """The k best, or all."""

    def draw(self, k: int, avoid: IntArray | None = None) -> Paths:
        """Independent draws, none of them the segmentation to avoid."""

    def draw_distinct(self, k: int, avoid: IntArray | None = None) -> DistinctPaths:
        """Draws without replacement, none of them the segmentation to avoid."""


class LatticeSegmentations:
    """All paths of a document's lattice, in proportion to exp(b * score)."""

    def __init__(self, model: TokenisedModel, document: Document, settings: EstimatorSettings) -> None:
        self._lattice = document.lattice
        self._settings = settings
        self.whole: Bound = narrowed("exact", model, document)  #: the sum over all paths is P(D) if they fit the window
        self.drawn: Bound = narrowed("unbiased", model, document)  #: likewise

    def count(self) -> int:
        """Paths of the lattice."""
        return count_paths(self._lattice)

    def best(self, k: int) -> Paths:
        """Best paths by descending score."""
        return n_best(self._lattice, k)

    def draw(self, k: int, avoid: IntArray | None = None) -> Paths:
        """Draw by forward filtering and backward sampling."""
        return sample(self._lattice, k, b=self._settings.b, seed=self._settings.seed, avoid=avoid)

    def draw_distinct(self, k: int, avoid: IntArray | None = None) -> DistinctPaths:
        """Draw by perturbed log probabilities."""
        return sample_distinct(self._lattice, k, b=self._settings.b, seed=self._settings.seed, avoid=avoid)


class ConsistentPaths:
    """The consistent paths of one lattice.

    A word reaches from a marker, or run of markers, to the next (where markers end words, to its end); one at the
    beginning of a text that has no marker is a word of its own.

    Args:
        lattice: of a whole text.
        inventory: its pieces, for their marker.

    Raises:
        InputError: a piece joins two words.
    """

    def __init__(self, lattice: Lattice, inventory: PieceInventory) -> None:
        bounds = np.array([0, *word_ends(lattice.spelling, inventory.marker, marker_ends=inventory.marker_ends)])
        ends = arc_ends(lattice)
        within = np.searchsorted(bounds, lattice.source, side="right") == np.searchsorted(bounds, ends, side="left")
        if not within.all():
            piece = inventory.pieces[int(lattice.piece[int(np.argmin(within))])]
            raise InputError(f"the piece {piece!r} joins two words, so that words are not segmented one by one")
        spelling = lattice.spelling
        spelt = [spelling[a:b] for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]
        numbers: dict[str, int] = {}
        self._word: IntArray = np.array([numbers.setdefault(word, len(numbers)) for word in spelt], dtype=np.int64)
        #: the different words, in order of their first tokens
        self.words = tuple(numbers)
        self._arc = lattice.first[bounds[:-1] + 1]  # (W,) first arc of each token
        tokens = np.unique(self._word, return_index=True)[1]  # where each word stands first
        arcs = _ranges(self._arc[tokens], np.append(self._arc, len(lattice.source))[tokens + 1])
        lengths = np.diff(bounds)[tokens]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = _ranges(bounds[tokens] + 1, bounds[tokens + 1] + 1)  # (n,) position after each character
        first = np.concatenate([[0, 0], np.cumsum(np.diff(lattice.first)[at])])
        moved = np.repeat(starts[:-1] - bounds[tokens], first[starts[1:] + 1] - first[starts[:-1] + 1])
        #: over the different words, one after the other
        self.lattice = Lattice(
            "".join(self.words),
            first,
            (lattice.source[arcs] + moved).astype(np.int32),
            lattice.piece[arcs],
            lattice.score[arcs],
        )
        self._first_arc = first[starts[:-1] + 1]  # (types,) first arc of each word in the lattice above
        self._tokens = tokens

    def count(self) -> int:
        """Number of consistent paths."""
        return count_paths(self.lattice)

    def sample(self, k: int, *, b: float = 1.0, seed: int, avoid: NDArray[Any] | None = None) -> Paths:
        """Draw paths of the whole text, with log Q_cons, as `truesource.evaluation.tokenisation.paths.sample`."""
        return self.expanded(sample(self.lattice, k, b=b, seed=seed, avoid=self._reduced(avoid)))

    def sample_distinct(
        self,
        k: int,
        *,
        b: float = 1.0,
        seed: int,
        avoid: NDArray[Any] | None = None,
        method: Method | None = None,
    ) -> DistinctPaths:
        """Draw paths of the whole text, with log Q_cons, as `evaluation.tokenisation.paths.sample_distinct`."""
        drawn = sample_distinct(self.lattice, k, b=b, seed=seed, avoid=self._reduced(avoid), method=method)
        return DistinctPaths(self.expanded(drawn.paths), drawn.log_inclusion, drawn.kappa, drawn.method)

    def n_best(self, k: int) -> Paths:
        """Best paths of the whole text, by descending log Q_cons, as `evaluation.tokenisation.paths.n_best`."""
        return self.expanded(n_best(self.lattice, k))

    def expanded(self, paths: Paths) -> Paths:
        """Paths of the lattice of different words as paths of the whole text."""
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
        """A consistent path of the whole text as one of the lattice of different words.

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

    def _reduced(self, avoid: NDArray[Any] | None) -> IntArray | None:
        return None if avoid is None else self.reduced(avoid)


def _ranges(low: IntArray, high: IntArray) -> IntArray:
    """The numbers from each of ``low`` to below its ``high``, one range after the other."""
    sizes = high - low
    ends = np.cumsum(sizes)
    numbers: IntArray = np.repeat(low - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)
    return numbers


class ConsistentSegmentations:
    """The consistent paths of a document's lattice, in proportion to the product of exp(b * score) over its words."""

    def __init__(self, model: TokenisedModel, document: Document, settings: EstimatorSettings) -> None:
        """Find the different words.

        Raises:
            InputError: a piece joins two words.
        """
        self._paths = ConsistentPaths(document.lattice, model.pieces.inventory)
        self._document = document
        self._settings = settings
        self._fit = every_segmentation_fits(model, document)

    @cached_property
    def _all(self) -> bool:
        """True where every segmentation is consistent and fits the model's window."""
        return self._fit and self._paths.count() == count_paths(self._document.lattice)

    @property
    def whole(self) -> Bound:
        """Exact where every segmentation is consistent and fits, else below P(D)."""
        return "exact" if self._all else "lower"

    @property
    def drawn(self) -> Bound:
        """Unbiased for P_cons, a part of P(D)."""
        return "unbiased" if self._all else "part"

    def count(self) -> int:
        """Consistent paths."""
        return self._paths.count()

    def best(self, k: int) -> Paths:
        """Best paths by descending score over the different words."""
        return self._paths.n_best(k)

    def draw(self, k: int, avoid: IntArray | None = None) -> Paths:
        """Draw by forward filtering and backward sampling over the different words."""
        return self._paths.sample(k, b=self._settings.b, seed=self._settings.seed, avoid=avoid)

    def draw_distinct(self, k: int, avoid: IntArray | None = None) -> DistinctPaths:
        """Draw by perturbed log probabilities over the different words."""
        return self._paths.sample_distinct(k, b=self._settings.b, seed=self._settings.seed, avoid=avoid)


# -- from any source of segmentations -------------------------------------------------------------------------------


def nbest(
    name: str, source: SegmentationSource, model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> Estimate:
    """Log of the sum of P over the ``settings.samples`` best segmentations, T* always among them; a lower bound.

    No draws; independent of b; does not fall when more segmentations are summed. T* takes the place of the last of the
    best segmentations where it is not one of them (scores that are not the tokeniser's own).
    """
    paths = canonical_first(document.best, source.best(settings.samples).each(), settings.samples)
    scored = score_segmentations(model, document, paths)
    return _of_segmentations(name, scored, source.whole if source.count() <= settings.samples else "lower")


def wr(
    name: str, source: SegmentationSource, model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> Estimate:
    """Log of the mean of P/Q over ``settings.samples`` independent draws; unbiased in probability."""
    paths = source.draw(settings.samples)
    scored = score_segmentations(model, document, paths.each())
    return _of_weights(name, scored, mean_of_weights(scored.log_p - paths.log_q), source.drawn)


def wr1(
    name: str, source: SegmentationSource, model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> Estimate:
    """P(T*) and the mean of P/Q over ``settings.samples`` - 1 samples of the others; unbiased in probability."""
    if source.count() == 1:
        return _of_segmentations(name, score_segmentations(model, document, [document.best]), source.whole)
    paths = source.draw(settings.samples - 1, document.best)
    scored = score_segmentations(model, document, [document.best, *paths.each()])
    weighted = mean_of_weights(scored.log_p[1:] - paths.log_q, float(scored.log_p[0]))
    return _of_weights(name, scored, weighted, source.drawn)


def wor(
    name: str, source: SegmentationSource, model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> Estimate:
    """Sum of P/q_kappa over ``settings.samples`` distinct draws; unbiased in probability, exact where these are all."""
    if source.count() <= settings.samples:
        return _of_all(name, source, model, document)
    drawn = source.draw_distinct(settings.samples)
    scored = score_segmentations(model, document, drawn.paths.each())
    return _of_weights(name, scored, sum_of_inclusions(scored.log_p, drawn.log_inclusion), source.drawn)


def wor1(
    name: str, source: SegmentationSource, model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> Estimate:
    """P(T*) and the sum of P/q_kappa over ``settings.samples`` - 1 distinct others.

    Unbiased in probability, exact where these are all (Cao & Rimell 2021 call it biased; it is not).
    """
    if source.count() <= settings.samples:
        return _of_all(name, source, model, document)
    drawn = source.draw_distinct(settings.samples - 1, document.best)
    scored = score_segmentations(model, document, [document.best, *drawn.paths.each()])
    weighted = sum_of_inclusions(scored.log_p[1:], drawn.log_inclusion, float(scored.log_p[0]))
    return _of_weights(name, scored, weighted, source.drawn)


# -- over all segmentations -----------------------------------------------------------------------------------


def one_best(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Log P(T*), the canonical tokenisation alone: a lower bound of log P(D)."""
    scored = score_segmentations(model, document, [document.best])
    return _of_segmentations("one-best", scored, "exact" if count_paths(document.lattice) == 1 else "lower")


def distinct(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Log of the sum of P over the distinct segmentations among ``settings.samples`` draws: a lower bound."""
    source = LatticeSegmentations(model, document, settings)
    scored = score_segmentations(model, document, source.draw(settings.samples).each())
    return _of_segmentations("distinct", scored, "exact" if scored.distinct == source.count() else "lower")


# -- estimates from scored segmentations ----------------------------------------------------------------------


def _of_segmentations(name: str, scored: ScoredSegmentations, bound: Bound) -> Estimate:
    variance, upper = (0.0, scored.log_lower) if bound == "exact" else (None, None)
    log_p = scored.log_lower
    return Estimate(
        estimator=name,
        log_p=log_p,
        bound=bound,
        relative_variance=variance,
        log_lower=log_p,
        steps=scored.steps,
        cuts=scored.distinct,
        log_upper=upper,
    )


def _of_all(name: str, source: SegmentationSource, model: TokenisedModel, document: Document) -> Estimate:
    scored = score_segmentations(model, document, source.best(source.count()).each())
    return _of_segmentations(name, scored, source.whole)


def _of_weights(name: str, scored: ScoredSegmentations, weighted: WeightedSum, bound: Bound) -> Estimate:
    return Estimate(
        estimator=name,
        bound=bound,
        log_lower=scored.log_lower,
        steps=scored.steps,
        cuts=scored.distinct,
        **vars(weighted),
    )
