"""Importance sampling of segmentations from the model itself, piece by piece (Geh et al. 2024)."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Document, Estimate, narrowed, reader
from truesource.evaluation.tokenisation.estimators.weights import (
    check_numbers,
    drawn,
    extend,
    log_sum,
    mean_of_weights,
    unique_pairs,
)
from truesource.evaluation.tokenisation.lattice import arc_ends
from truesource.generator.piece_model import TokenisedModel


def guided(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Estimate log P(D) from ``settings.samples`` independent segmentations, sampled piece by piece.

    The next piece is sampled from the model's distribution over the pieces that can continue the text; the total
    probability of these pieces is a factor of the sample's weight, and so is the probability that the text
    ends. The mean weight is unbiased. Samples that have read the same pieces are one row of the model's batches.

    A prefix of a word may itself be a frequent word (``the`` in ``theatre``): the model then samples it
    nearly always, and gives little probability to the rest. Well-trained models make the weights so uneven that the
    logarithm is usually far too low; `block_importance` and `particle_filter` consider whole words and avoid this.

    Raises:
        InputError: the model's window is too short for the canonical tokenisation.
    """
    lattice, n = document.lattice, settings.samples
    rng = np.random.default_rng(settings.seed)
    scorer = reader(model, document)
    tokens, stop = model.pieces.inventory.ids[lattice.piece], arc_ends(lattice)
    by_source = np.argsort(lattice.source, kind="stable")
    first = np.searchsorted(lattice.source[by_source], np.arange(lattice.n + 1))
    degree = np.diff(first)
    context, position = np.full(n, scorer.begin(), dtype=np.int64), np.zeros(n, dtype=np.int64)
    log_w, log_p = np.zeros(n), np.zeros(n)
    cut = np.zeros(n, dtype=np.int64)  # equal numbers: the same pieces
    scored = 0
    while len(on := np.flatnonzero(position < lattice.n)):
        places, of = unique_pairs(context[on], position[on])
        columns = np.arange(degree[places[:, 1]].max())
        there = columns < degree[places[:, 1]][:, None]
        arcs = by_source[(first[places[:, 1]][:, None] + columns)[there]]
        table = np.full(there.shape, -math.inf)
        table[there] = scorer.log_prob(np.repeat(places[:, 0], there.sum(axis=1)), tokens[arcs])
        check_numbers(table)
        scored += len(arcs)
        arc_table = np.full(there.shape, -1, dtype=np.int64)
        arc_table[there] = arcs
        sums = logsumexp(table, axis=1)
        alive = np.ones(len(context), dtype=bool)
        alive[on] = sums[of] > -math.inf
        on, of = on[alive[on]], of[alive[on]]
        if len(on):
            column = drawn(table[of], rng)
            arc = arc_table[of, column]
            log_w[on] += sums[of]
            log_p[on] += table[of, column]
            context[on] = extend(scorer, context[on], tokens[arc])
            position[on] = stop[arc]
            cut[on] = cut.max() + 1 + unique_pairs(cut[on], arc)[1]
        context, position, cut = context[alive], position[alive], cut[alive]
        log_w, log_p = log_w[alive], log_p[alive]
        scorer.keep(np.unique(context))
    ends = scorer.log_end(context)
    check_numbers(ends)
    _, different = np.unique(cut, return_index=True)
    total = mean_of_weights(np.concatenate([log_w + ends, np.full(n - len(log_w), -math.inf)]))
    return Estimate(
        estimator="guided",
        bound=narrowed("unbiased", model, document),
        log_lower=log_sum((log_p + ends)[different]),
        steps=scorer.steps,
        cuts=scored,
        **vars(total),
    )
