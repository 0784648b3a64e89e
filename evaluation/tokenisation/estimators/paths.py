"""Estimators that score some segmentations of a text: the best ones, draws with replacement, draws without.

After Cao & Rimell (2021), section 3, with the corrections of Kool et al. (2019): draws without replacement need at
least two, and with T* taken apart the estimate stays unbiased. In all of them T* is the canonical tokenisation.
"""

from __future__ import annotations

from typing import Protocol

from truesource.evaluation.tokenisation.estimators.estimate import Bound, Document, Estimate
from truesource.evaluation.tokenisation.estimators.segmentations import ScoredSegmentations, score_segmentations
from truesource.evaluation.tokenisation.estimators.weights import WeightedSum, mean_of_weights, sum_of_inclusions
from truesource.evaluation.tokenisation.marginal import count_paths
from truesource.evaluation.tokenisation.n_best import canonical_first, n_best
from truesource.evaluation.tokenisation.paths import DistinctPaths, Paths
from truesource.evaluation.tokenisation.sampling import sample
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.evaluation.tokenisation.window import narrowed
from truesource.evaluation.tokenisation.without_replacement import sample_distinct
from truesource.generator.language_model import TokenisedModel
from truesource.grammar.support.arrays import IntArray


class SegmentationSource(Protocol):
    """Where segmentations come from: all paths of a lattice, or those with one segmentation for each word."""

    @property
    def whole(self) -> Bound:
        """What a sum over all of its segmentations is for P(D)."""

    @property
    def drawn(self) -> Bound:
        """What an unbiased estimate of that sum is for P(D)."""

    def count(self) -> int:
        """How many segmentations there are."""

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
        """By descending score."""
        return n_best(self._lattice, k)

    def draw(self, k: int, avoid: IntArray | None = None) -> Paths:
        """By forward filtering and backward sampling."""
        return sample(self._lattice, k, b=self._settings.b, seed=self._settings.seed, avoid=avoid)

    def draw_distinct(self, k: int, avoid: IntArray | None = None) -> DistinctPaths:
        """By perturbed log probabilities."""
        return sample_distinct(self._lattice, k, b=self._settings.b, seed=self._settings.seed, avoid=avoid)


# -- from any source of segmentations -------------------------------------------------------------------------------


def nbest(
    name: str, source: SegmentationSource, model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> Estimate:
    """Log of the sum of P over the ``settings.samples`` best segmentations, T* always among them; a lower bound.

    No draws; independent of b; does not fall when more segmentations are summed. T* takes the place of the last of the
    best segmentations where it is not one of them (scores that are not the tokeniser's own).
    """
    paths = canonical_first(document.best, source.best(settings.samples).each(), settings.samples)
    found = score_segmentations(model, document, paths)
    return _of_segmentations(name, found, source.whole if source.count() <= settings.samples else "lower")


def wr(
    name: str, source: SegmentationSource, model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> Estimate:
    """Log of the mean of P/Q over ``settings.samples`` independent draws; unbiased in probability."""
    paths = source.draw(settings.samples)
    found = score_segmentations(model, document, paths.each())
    return _of_weights(name, found, mean_of_weights(found.log_p - paths.log_q), source.drawn)


def wr1(
    name: str, source: SegmentationSource, model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> Estimate:
    """P(T*) and the mean of P/Q over ``settings.samples`` - 1 samples of the others; unbiased in probability."""
    if source.count() == 1:
        return _of_segmentations(name, score_segmentations(model, document, [document.best]), source.whole)
    paths = source.draw(settings.samples - 1, document.best)
    found = score_segmentations(model, document, [document.best, *paths.each()])
    weighted = mean_of_weights(found.log_p[1:] - paths.log_q, float(found.log_p[0]))
    return _of_weights(name, found, weighted, source.drawn)


def wor(
    name: str, source: SegmentationSource, model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> Estimate:
    """Sum of P/q_kappa over ``settings.samples`` distinct draws; unbiased in probability, exact where these are all."""
    if source.count() <= settings.samples:
        return _of_all(name, source, model, document)
    drawn = source.draw_distinct(settings.samples)
    found = score_segmentations(model, document, drawn.paths.each())
    return _of_weights(name, found, sum_of_inclusions(found.log_p, drawn.log_inclusion), source.drawn)


def wor1(
    name: str, source: SegmentationSource, model: TokenisedModel, document: Document, settings: EstimatorSettings
) -> Estimate:
    """P(T*) and the sum of P/q_kappa over ``settings.samples`` - 1 distinct others.

    Unbiased in probability, exact where these are all (Cao & Rimell 2021 call it biased; it is not).
    """
    if source.count() <= settings.samples:
        return _of_all(name, source, model, document)
    drawn = source.draw_distinct(settings.samples - 1, document.best)
    found = score_segmentations(model, document, [document.best, *drawn.paths.each()])
    weighted = sum_of_inclusions(found.log_p[1:], drawn.log_inclusion, float(found.log_p[0]))
    return _of_weights(name, found, weighted, source.drawn)


# -- over all segmentations -----------------------------------------------------------------------------------


def one_best(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Log P(T*), the canonical tokenisation alone: a lower bound of log P(D)."""
    found = score_segmentations(model, document, [document.best])
    return _of_segmentations("one-best", found, "exact" if count_paths(document.lattice) == 1 else "lower")


def distinct(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Log of the sum of P over the distinct segmentations among ``settings.samples`` draws: a lower bound."""
    source = LatticeSegmentations(model, document, settings)
    found = score_segmentations(model, document, source.draw(settings.samples).each())
    return _of_segmentations("distinct", found, "exact" if found.distinct == source.count() else "lower")


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
    found = score_segmentations(model, document, source.best(source.count()).each())
    return _of_segmentations(name, found, source.whole)


def _of_weights(name: str, scored: ScoredSegmentations, weighted: WeightedSum, bound: Bound) -> Estimate:
    return Estimate(
        estimator=name,
        bound=bound,
        log_lower=scored.log_lower,
        steps=scored.steps,
        cuts=scored.distinct,
        **vars(weighted),
    )
