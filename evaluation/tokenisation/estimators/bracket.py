"""Bounds of the probability of a text that are certain, by leaving improbable beginnings of segmentations."""

from __future__ import annotations

import math
from dataclasses import replace

from truesource.evaluation.tokenisation.estimators.estimate import Document, Estimate
from truesource.evaluation.tokenisation.estimators.exact import ExactSum, exact_sum, of_sum, sum_over_contexts
from truesource.evaluation.tokenisation.estimators.segmentations import score_segmentations
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.generator.language_model import TokenisedModel


def bracket(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Log of the sum of P over the segmentations whose beginnings were followed: a lower bound, with an upper one.

    Raises:
        InputError: as for `bracket_sum`.
    """
    return of_sum("bracket", bracket_sum(model, document, settings))


def bracket_sum(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> ExactSum:
    """The pass of `exact_sum` without beginnings that are improbable beside the whole of T*.

    No segmentation is more probable than its beginning, so what was left adds at most the P of the beginnings left.
    They are chosen so that this sums to at most ``settings.tolerance * P(T*)``: at every position the least probable
    ones, to an equal share of what there is still to spend. Where the model is sure of its segmentations the pass is
    far shorter than enumeration, though more so the shorter the text: early in a long one, no beginning is improbable
    beside T*.

    Args:
        model: as in `exact_sum`.
        document: as in `exact_sum`.
        settings: ``tolerance``, and ``most_prefixes``, the most contexts that may be visited.

    Returns:
        Sum, maximum and entropy over the segmentations that were followed; with ``log_upper``. If the model gives T*
        probability zero, all are followed.

    Raises:
        InputError: as for `exact_sum`; how many contexts there are is found out on the way.
    """
    likely = score_segmentations(model, document, [document.best])
    if likely.log_lower == -math.inf or settings.tolerance == 0.0:
        found = exact_sum(model, document, settings)
    else:
        spare = likely.log_lower + math.log(settings.tolerance)
        found = sum_over_contexts(model, document, settings, spare)
    return replace(found, steps=found.steps + likely.steps)
