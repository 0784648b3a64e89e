"""Beam summing (Vieira et al. 2025): the likeliest segmentations of each beginning of a text."""

from __future__ import annotations

import numpy as np

from truesource.evaluation.tokenisation.estimators.estimate import Bound, Document, Estimate
from truesource.evaluation.tokenisation.estimators.particle_filter import Filter, finished
from truesource.evaluation.tokenisation.estimators.walk import BlockWalk
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.evaluation.tokenisation.window import narrowed
from truesource.generator.language_model import TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray


def beam(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Log of the sum of P over the segmentations that a beam of width ``settings.particles`` ends with: a lower bound.

    After each block every segmentation goes on by each of its ``candidates`` best ways, and those of the largest P
    stay; where the model's memory is finite, segmentations that it cannot tell apart are one. Nothing is drawn. As a
    rule a wider beam finds more, but this is not certain.

    Raises:
        InputError: the model's window is too short for the canonical tokenisation.
    """
    walk = BlockWalk(model, document, settings, tail=False)
    filters = Filter(walk, lambda log_w: likeliest(log_w, settings.particles))
    *_, final = filters.run()
    bound: Bound = "exact" if walk.whole and not filters.reduced else "lower"
    return finished("beam", filters, final, narrowed(bound, model, document))


def likeliest(log_w: FloatArray, most: int) -> tuple[IntArray, FloatArray]:
    """The numbers of the largest of (R,) log weights, in ascending order, and these; of equals, the first."""
    kept = np.sort(np.argsort(-log_w, kind="stable")[:most])
    return kept, log_w[kept]
