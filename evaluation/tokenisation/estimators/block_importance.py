"""Importance sampling by blocks, each segmentation in proportion to its probability (Chirkova et al. 2023)."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from truesource.evaluation.tokenisation.estimators.estimate import Bound, Document, Estimate
from truesource.evaluation.tokenisation.estimators.rows import drawn, unique_pairs
from truesource.evaluation.tokenisation.estimators.walk import BlockWalk
from truesource.evaluation.tokenisation.estimators.weights import log_sum, mean_of_weights
from truesource.evaluation.tokenisation.settings import EstimatorSettings
from truesource.evaluation.tokenisation.window import narrowed
from truesource.generator.language_model import TokenisedModel


def block_importance(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Log P(D) from ``settings.particles`` independent segmentations, each drawn block after block.

    A sample goes through a block by one of the ``candidates`` best segmentations, or by one unlisted segmentation drawn
    for it at 1/q, in proportion to these weights; their sum is a factor of the weight of the sample, and so is the
    probability that the text ends. The mean weight is unbiased for P(D). With ``tail`` off, unlisted segmentations have
    no part, and the mean is unbiased for the sum over segmentations of the text that are made of listed ones (bound
    ``part``).

    Samples that have read the same pieces are one row of the model's batches. A word's segmentation that the rest of
    the text makes likely only later is in few samples or none: then the estimate is low as a rule, and the error bar
    too small.

    Raises:
        InputError: the model's window is too short for the canonical tokenisation.
    """
    rng = np.random.default_rng(settings.seed)
    walk = BlockWalk(model, document, settings, tail=settings.tail)
    n = settings.particles
    context, position = np.full(n, walk.scorer.begin()), np.zeros(n, dtype=np.int64)
    log_w, log_p = np.zeros(n), np.zeros(n)
    cut = np.zeros(n, dtype=np.int64)  # equal numbers: the same pieces
    for end in walk.blocks.ends:
        moves = walk.moves(context, position, end, rng if settings.tail else None)
        table = moves.log_weights
        sums = logsumexp(table, axis=1)
        alive = np.flatnonzero(sums > -np.inf)
        if not len(alive):
            context = context[:0]
            break
        rows = moves.rows[alive, drawn(table[alive], rng)]
        log_w, log_p = log_w[alive] + sums[alive], log_p[alive] + moves.log_p[rows]
        cut = unique_pairs(cut[alive], moves.cut[rows])[1]
        context, position = walk.advance(moves, rows), moves.position[rows]
    ends = walk.score_ends(context)
    log_w, log_p = log_w[: len(ends)] + ends, log_p[: len(ends)] + ends
    _, first = np.unique(cut[: len(ends)], return_index=True)
    found = mean_of_weights(np.concatenate([log_w, np.full(n - len(log_w), -np.inf)]))
    bound: Bound = "unbiased" if settings.tail or walk.whole else "part"
    return Estimate(
        estimator="block",
        bound=narrowed(bound, model, document),
        log_lower=log_sum(log_p[first]),
        steps=walk.scorer.steps,
        cuts=walk.scored,
        **vars(found),
    )
