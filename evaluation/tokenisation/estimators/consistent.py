"""Segmentations that divide all tokens of one word alike, as a source for the estimators of `paths`.

Their sum P_cons is at most P(D), and is P(D) where no word that has several segmentations comes twice.
"""

from __future__ import annotations

from functools import cached_property

from truesource.evaluation.tokenisation.consistent import ConsistentPaths
from truesource.evaluation.tokenisation.estimators.estimate import Bound, Document
from truesource.evaluation.tokenisation.marginal import count_paths
from truesource.evaluation.tokenisation.paths import DistinctPaths, Paths
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.evaluation.tokenisation.window import every_segmentation_fits
from truesource.generator.language_model import TokenisedModel
from truesource.grammar.support.arrays import IntArray


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
        """Whether every segmentation is consistent and fits the model's window."""
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
        """By descending score over the different words."""
        return self._paths.n_best(k)

    def draw(self, k: int, avoid: IntArray | None = None) -> Paths:
        """By forward filtering and backward sampling over the different words."""
        return self._paths.sample(k, b=self._settings.b, seed=self._settings.seed, avoid=avoid)

    def draw_distinct(self, k: int, avoid: IntArray | None = None) -> DistinctPaths:
        """By perturbed log probabilities over the different words."""
        return self._paths.sample_distinct(k, b=self._settings.b, seed=self._settings.seed, avoid=avoid)
