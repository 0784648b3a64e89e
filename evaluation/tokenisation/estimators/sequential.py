"""Estimators that read a text from left to right by many segmentations at once, block after block.

They are the discrete particle filter (Fearnhead & Clifford 2003), beam summing (Vieira et al. 2025) and importance
sampling by blocks (Chirkova et al. 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Bound, Document, Estimate, narrowed
from truesource.evaluation.tokenisation.estimators.blocks import BlockWalk
from truesource.evaluation.tokenisation.estimators.weights import drawn, log_sum, mean_of_weights, unique_pairs
from truesource.generator.piece_model import TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray

#: function from (R,) log weights to the numbers of selected particles and their new log weights
Reduction = Callable[[FloatArray], tuple[IntArray, FloatArray]]


@dataclass(frozen=True)
class Particles:
    """Distinct segmentations of a prefix of a text, in one or several filters; equal model contexts are merged."""

    context: IntArray  #: (P,)
    position: IntArray  #: (P,) characters read
    log_w: FloatArray  #: (P,) log weights, nats
    log_p: FloatArray  #: (P,) log of the sum of P of its segmentations, on average at most its weight
    filter: IntArray  #: (P,) number of the filter of each

    @classmethod
    def at(cls, context: int, position: int, filters: int) -> Particles:
        """Build one particle of weight 1 for each filter, all in the same state."""
        zero = np.zeros(filters)
        return cls(np.full(filters, context), np.full(filters, position), zero, zero, np.arange(filters))

    def merged(self) -> Particles:
        """Merge equal contexts at equal positions of one filter."""
        keys = np.stack([self.filter, self.position, self.context], axis=1)
        different, first, of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        if len(different) == len(keys):
            return self
        sums = []
        for logs in (self.log_w, self.log_p):
            total = np.full(len(different), -math.inf)
            np.logaddexp.at(total, of.reshape(-1), logs)
            sums.append(total)
        return Particles(self.context[first], self.position[first], sums[0], sums[1], self.filter[first])

    def log_sums(self, logs: FloatArray, filters: int) -> FloatArray:
        """Compute the log-sum-exp over the particles of each filter, (F,); -inf without particles."""
        return np.array([log_sum(logs[self.filter == i]) for i in range(filters)])


class Filter:
    """A filter of particles that extends through a text block by block; too many particles are reduced."""

    def __init__(
        self, walk: BlockWalk, reduction: Reduction, rng: np.random.Generator | None = None, filters: int = 1
    ) -> None:
        """Prepare to read.

        Args:
            walk: walk through the text.
            reduction: applied to the particles of each filter after every block but the last.
            rng: samples from the tails of blocks; None: only listed segmentations.
            filters: number of independent filters, which share model batches and common contexts.
        """
        self.walk, self.filters = walk, filters
        self.reduced = False  #: True if a reduction has removed a particle
        self._reduction, self._rng = reduction, rng

    def run(self) -> Iterator[Particles]:
        """Yield the particles after each block; empty if the model gives probability zero to all of them."""
        now = Particles.at(self.walk.scorer.begin(), 0, self.filters)
        *inner, last = self.walk.blocks.ends
        for end in inner:
            now = self.through(now, end, reduce=True)
            yield now
        yield self.through(now, last, reduce=False)

    def through(self, now: Particles, end: int, *, reduce: bool) -> Particles:
        """Return the particles after one block."""
        if not len(now.context):
            return now
        moves = self.walk.moves(now.context, now.position, end, self._rng)
        table = now.log_w[:, None] + moves.log_weights
        parent, column = np.nonzero(table > -math.inf)
        log_w = table[parent, column]
        if reduce:
            selected = []
            for i in range(self.filters):
                members = np.flatnonzero(now.filter[parent] == i)
                stay, new = self._reduction(log_w[members]) if len(members) else (members, log_w[members])
                self.reduced |= len(stay) < len(members)
                log_w[members[stay]] = new
                selected.append(members[stay])
            chosen = np.concatenate(selected)
            parent, column, log_w = parent[chosen], column[chosen], log_w[chosen]
        rows = moves.rows[parent, column]
        context = self.walk.advance(moves, rows)
        log_p = now.log_p[parent] + moves.log_p[rows]
        return Particles(context, moves.position[rows], log_w, log_p, now.filter[parent]).merged()


def discrete_filter(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Filter:
    """Return the filters of `particle_filter` before the first block."""
    rng = np.random.default_rng(settings.seed)
    walk = BlockWalk(model, document, settings, tail=settings.tail)
    tail = rng if settings.tail else None
    return Filter(walk, lambda log_w: resampled(log_w, settings.particles, rng), tail, max(1, settings.replicates))


def particle_filter(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Estimate log P(D) from at most ``settings.particles`` distinct segmentations of each prefix of the text.

    After each block, every particle is extended by each of its ``candidates`` best segmentations, and by one unlisted
    segmentation sampled with weight 1/q; `resampled` selects distinct particles among the results. The sum of the
    weights at the end of the text is unbiased for P(D), and equals P(D) if no segmentation was removed (bound
    ``exact``). Without ``tail``, unlisted segmentations are excluded: the sum is a lower bound if all listed ones
    remain, else unbiased for the sum over them (bound ``part``).

    One filter does not show its variance; with ``settings.replicates`` of two or more, that many independent filters
    are averaged and their spread estimates it, with degrees of freedom one less; the effective sample size and the
    largest share are of their totals. They share contexts, so two cost less than twice one.

    A rarely sampled unlisted segmentation of large weight affects the spread of few or no filters. So the
    variance also includes the unlisted share under the scores; if it is large, there is no error bar; raise
    ``candidates`` then (`Estimate.unlisted`).

    Raises:
        InputError: the model's window is too short for the canonical tokenisation.
    """
    filters = discrete_filter(model, document, settings)
    walk = filters.walk
    *_, final = filters.run()
    bound: Bound = "unbiased"
    if not settings.tail and not walk.whole:
        bound = "part" if filters.reduced else "lower"
    elif walk.whole and not filters.reduced:
        bound = "exact"
    return finished("dpf", filters, final, narrowed(bound, model, document))


def finished(name: str, filters: Filter, final: Particles, bound: Bound) -> Estimate:
    """Return the estimate from the particles at the end of the text."""
    walk = filters.walk
    ends = walk.score_ends(final.context)
    log_w, log_lower = final.log_w + ends, final.log_sums(final.log_p + ends, filters.filters).max()
    totals = mean_of_weights(final.log_sums(log_w, filters.filters))
    several = filters.filters > 1  # the particles of one filter are not independent samples
    return Estimate(
        estimator=name,
        log_p=totals.log_p,
        bound=bound,
        relative_variance=0.0 if bound == "exact" else totals.relative_variance,
        ess=totals.ess if several else None,
        max_share=totals.max_share if several else None,
        log_lower=float(log_lower),
        steps=walk.scorer.steps,
        cuts=walk.scored,
        degrees=filters.filters - 1 if several else None,
        unlisted=walk.unlisted,
    )


def resampled(log_w: FloatArray, most: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Select at most ``most`` distinct particles, with new weights whose expectations are the old weights.

    There is one c with sum min(w/c, 1) = most. Weights of c or more stay as they are; of the others, systematic
    resampling keeps each with probability w/c, at weight c (Fearnhead & Clifford 2003, section 3).

    Args:
        log_w: (R,) finite log weights, nats.
        most: maximum number of particles to select, at least 1.
        rng: random generator of the resampling.

    Returns:
        Numbers of the selected particles, in ascending order, and their log weights.
    """
    if len(log_w) <= most:
        return np.arange(len(log_w)), log_w
    order = np.argsort(-log_w, kind="stable")
    sorted_w = log_w[order]
    rest = np.logaddexp.accumulate(sorted_w[::-1])[::-1]  # log sums from each to the last
    c = rest[:most] - np.log(most - np.arange(most))  # if the k heaviest stay as they are, k from 0
    heavy = int(np.argmax(sorted_w[:most] < c))  # the first that is below its c; exists up to rounding
    if sorted_w[heavy] >= c[heavy]:
        heavy = most - 1
    stay, others = order[:heavy], np.sort(order[heavy:])
    spots, top = most - heavy, sorted_w[heavy]  # the heaviest may be too far above the others for one scale
    cumulative = np.cumsum(np.exp(log_w[others] - top))
    points = (rng.random() + np.arange(spots)) / spots * cumulative[-1]
    counts = np.bincount(np.minimum(np.searchsorted(cumulative, points, side="right"), len(others) - 1))
    light = np.flatnonzero(counts)  # a count above one is possible only if rounding makes w exceed c
    log_c = math.log(cumulative[-1] / spots) + top
    selected = np.concatenate([stay, others[light]])
    new = np.concatenate([log_w[stay], log_c + np.log(counts[light])])
    ascending = np.argsort(selected)
    return selected[ascending], new[ascending]


def beam(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Sum P over the final segmentations of a beam of width ``settings.particles``: a lower bound.

    After each block, every segmentation is extended by each of its ``candidates`` best ones, and the results of largest
    P remain; if the model's memory is finite, indistinguishable segmentations are merged. Nothing is sampled. A wider
    beam usually finds more, but not always.

    Raises:
        InputError: the model's window is too short for the canonical tokenisation.
    """

    def likeliest(log_w: FloatArray) -> tuple[IntArray, FloatArray]:  # of equals, the first
        selected = np.sort(np.argsort(-log_w, kind="stable")[: settings.particles])
        return selected, log_w[selected]

    walk = BlockWalk(model, document, settings, tail=False)
    filters = Filter(walk, likeliest)
    *_, final = filters.run()
    bound: Bound = "exact" if walk.whole and not filters.reduced else "lower"
    return finished("beam", filters, final, narrowed(bound, model, document))


def block_importance(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Estimate log P(D) from ``settings.particles`` independent segmentations, each sampled block after block.

    A sample segments a block by one of the ``candidates`` best segmentations, or by one unlisted segmentation sampled
    with weight 1/q, in proportion to these weights; their sum is a factor of the weight of the sample, and so is the
    probability that the text ends. The mean weight is unbiased for P(D). Without ``tail``, unlisted segmentations are
    excluded, and the mean is unbiased for the sum over segmentations that consist of listed ones (bound
    ``part``).

    Samples that have read the same pieces are one row of the model's batches. A segmentation of a word that only the
    rest of the text makes likely is in few samples or none: then the estimate is usually too low, and the error bar
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
    total = mean_of_weights(np.concatenate([log_w, np.full(n - len(log_w), -np.inf)]))
    bound: Bound = "unbiased" if settings.tail or walk.whole else "part"
    return Estimate(
        estimator="block",
        bound=narrowed(bound, model, document),
        log_lower=log_sum(log_p[first]),
        steps=walk.scorer.steps,
        cuts=walk.scored,
        **vars(total),
    )
