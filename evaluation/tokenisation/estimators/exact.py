"""Exact probability of a text, or certain bounds, by a forward pass over positions with contexts as states.

Models of finite memory reach the same context by many segmentations, and the pass is the product of lattice and
automaton. Networks never do, and the pass enumerates the segmentations, each common prefix once. `bracket` skips
improbable prefixes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Document, Estimate, WithinWindow, reader
from truesource.evaluation.tokenisation.estimators.weights import check_numbers, log_sum, score_segmentations
from truesource.evaluation.tokenisation.lattice import Lattice, arc_ends
from truesource.generator.piece_model import IncrementalScorer, LatticeScorer, TokenisedModel
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError

CHUNK = 1024  #: pairs of a context and an arc in one call of the model
FORGET = 1024  #: number of new contexts after which unused contexts are forgotten
PROBE = 12  #: number of pieces after which a model of finite memory has forgotten the first one


@dataclass(frozen=True)
class States:
    """The contexts at one position, and the sums over the segmentations that lead there."""

    context: IntArray  #: (R,)
    log_p: FloatArray  #: (R,) log probability of the text so far, summed over segmentations

    @classmethod
    def joined(cls, parts: Sequence[States]) -> States:
        """Join several sets of states, and merge equal contexts."""
        context = np.concatenate([np.empty(0, np.int64), *(part.context for part in parts)])
        log_p = np.concatenate([np.empty(0), *(part.log_p for part in parts)])
        different, group = np.unique(context, return_inverse=True)
        if len(different) == len(context):
            return cls(context, log_p)
        order = np.lexsort((-log_p, group))  # the most likely of each group first
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        top = log_p[order[starts]]
        weight = np.exp(log_p[order] - np.repeat(top, np.diff(np.append(starts, len(order)))))
        return cls(different, top + np.log(np.add.reduceat(weight, starts)))

    def where(self, which: BoolArray) -> States:
        """Select states."""
        return States(self.context[which], self.log_p[which])


class Budget:
    """The probability of prefixes that may be skipped, and of lost prefixes."""

    def __init__(self, spare: float) -> None:
        self._spare = spare  # log of the whole budget, nats; -inf: none
        self._left = 1.0  # remaining share of the budget
        self.log_dropped = -math.inf

    def lose(self, log_p: FloatArray) -> None:
        """Count prefixes that cannot be extended, whatever their probability."""
        self.log_dropped = float(np.logaddexp.reduce(np.append(log_p, self.log_dropped)))

    def keeps(self, log_p: FloatArray, share: float) -> IntArray:
        """Return numbers of the prefixes to extend; skip the least probable, up to a share of the budget."""
        order = np.argsort(log_p, kind="stable")
        log_p = log_p[order]
        at = int(np.searchsorted(log_p, -math.inf, side="right"))  # impossible prefixes cost nothing
        if self._spare > -math.inf and self._left > 0.0 and at < len(log_p):
            mass = np.logaddexp.accumulate(log_p[at:])
            more = int(np.searchsorted(mass, self._spare + math.log(self._left * share), side="right"))
            if more:
                lost = float(mass[more - 1])
                self._left -= math.exp(lost - self._spare)
                self.log_dropped = float(np.logaddexp(self.log_dropped, lost))
                at += more
        return np.sort(order[at:])


class TooManyContextsError(InputError):
    """Exact enumeration of a text would visit more contexts than allowed."""

    default_code = "too-many-contexts"


@dataclass(frozen=True, kw_only=True)
class ExactSum:
    """The results of one pass over all segmentations of a text."""

    log_p: float = -math.inf  #: log of the sum of P over all segmentations, nats; -inf if all have probability zero
    #: log of P of the prefixes that were not extended to the end, nats; -inf: all were
    log_dropped: float = -math.inf
    contexts: int  #: pairs of a position and a context that were visited, the empty text included
    steps: int  #: token-steps of the model

    @property
    def log_upper(self) -> float:
        """Upper bound of log P(D), nats: no segmentation is more probable than its prefix."""
        return float(np.logaddexp(self.log_p, self.log_dropped))


def exact(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Compute log P(D) by a sum over all segmentations; a lower bound if some do not fit the model's window.

    Raises:
        InputError: the model's window is too short for the canonical tokenisation, or there are too many contexts.
    """
    return of_sum("exact", exact_sum(model, document, settings))


def of_sum(name: str, total: ExactSum) -> Estimate:
    """Return the estimate from a sum: exact, or between two bounds if some prefixes were not extended."""
    whole = total.log_dropped == -math.inf
    return Estimate(
        estimator=name,
        log_p=total.log_p,
        bound="exact" if whole else "lower",
        relative_variance=0.0 if whole else None,
        log_lower=total.log_p,
        steps=total.steps,
        cuts=total.contexts - 1,
        log_upper=total.log_upper,
    )


def count_prefixes(lattice: Lattice, most: int | None = None) -> int:
    """Count distinct prefixes of segmentations, including the empty and complete ones, up to ``most``."""
    counts = [1]
    total = 1
    source, first = lattice.source.tolist(), lattice.first.tolist()
    for position in range(1, lattice.n + 1):
        counts.append(sum(counts[j] for j in source[first[position] : first[position + 1]]))
        total += counts[-1]
        if most is not None and total > most:
            break
    return total


def exact_sum(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> ExactSum:
    """Sum P over all segmentations of a text that fit the model's window.

    ``log_dropped`` is the P of prefixes that fill the window before the end of the text.

    Args:
        model: model, read through its `incremental_scorer`; unused contexts are forgotten.
        document: document with the lattice of its segmentations.
        settings: ``most_prefixes`` is the maximum number of contexts to visit.

    Raises:
        InputError: the model's window is too short for the canonical tokenisation, the segmentations have too many
            contexts (for a model of infinite memory, counted before it runs), or the model gives a
            probability that is not a number.
    """
    _check_prefixes(model, document.lattice, settings)
    return sum_over_contexts(model, document, settings)


def sum_over_contexts(
    model: TokenisedModel, document: Document, settings: EstimatorSettings, spare: float = -math.inf
) -> ExactSum:
    """Compute `exact_sum` at a cost not known before; skip prefixes of total probability up to exp(spare)."""
    lattice = document.lattice
    scorer = reader(model, document)
    tokens = model.pieces.inventory.ids[lattice.piece]
    if spare == -math.inf and isinstance(scorer, LatticeScorer):
        return _in_one_pass(scorer, lattice, tokens, settings)
    by_source = np.argsort(lattice.source, kind="stable")
    leaving = np.searchsorted(lattice.source[by_source], np.arange(lattice.n + 2))
    target = arc_ends(lattice)
    waiting: list[list[States]] = [[] for _ in range(lattice.n + 1)]
    waiting[0].append(States(np.array([scorer.begin()]), np.zeros(1)))
    budget = Budget(spare)
    visited = n_new = 0
    for position in range(lattice.n + 1):
        states = States.joined(waiting[position])
        waiting[position] = []
        visited += len(states.context)
        if visited > settings.most_prefixes:
            raise _too_many(settings)
        if isinstance(scorer, WithinWindow) and position < lattice.n:
            full = scorer.full(states.context)
            budget.lose(states.log_p[full])
            states = states.where(~full)
        if position == lattice.n:
            break
        arcs = by_source[leaving[position] : leaving[position + 1]]
        pairs = len(states.context) * len(arcs)
        share = CHUNK / max(pairs, CHUNK) / (lattice.n - position)
        for low in range(0, pairs, CHUNK):
            pair = np.arange(low, min(low + CHUNK, pairs))
            source, arc = pair // len(arcs), arcs[pair % len(arcs)]
            new, extended = _extended(scorer, states, source, tokens[arc], budget, share)
            n_new += len(extended)
            ends = target[arc[extended]]
            for end in np.unique(ends).tolist():
                waiting[end].append(new.where(ends == end))
            if n_new > FORGET:
                here = states.context[(low + CHUNK) // len(arcs) :]
                scorer.keep(np.unique(np.concatenate([here, *(s.context for later in waiting for s in later)])))
                n_new = 0
    at_end = np.empty(len(states.context))
    for low in range(0, len(states.context), CHUNK):
        scorer.keep(np.unique(states.context[low:]))
        at_end[low : low + CHUNK] = scorer.log_end(states.context[low : low + CHUNK])
    return _sum_at_end(states, at_end, ExactSum(log_dropped=budget.log_dropped, contexts=visited, steps=scorer.steps))


def _sum_at_end(states: States, at_end: FloatArray, counts: ExactSum) -> ExactSum:
    """Add the sum over the states of the last position, with log probabilities of the end, (R,)."""
    check_numbers(at_end)
    weights = states.log_p + at_end
    return replace(counts, log_p=log_sum(weights[at_end > -math.inf]))


def _in_one_pass(
    scorer: IncrementalScorer, lattice: Lattice, tokens: IntArray, settings: EstimatorSettings
) -> ExactSum:
    """Compute `sum_over_contexts` for a model that processes whole lattices."""
    assert isinstance(scorer, LatticeScorer)
    sums = scorer.sum_paths(lattice.source.astype(np.int64), lattice.first, tokens, settings.most_prefixes)
    visited = len(sums.context)
    if visited > settings.most_prefixes:
        raise _too_many(settings)
    last = slice(int(sums.first[lattice.n]), int(sums.first[lattice.n + 1]))
    states = States(sums.context[last], sums.log_p[last])
    return _sum_at_end(states, scorer.log_end(states.context), ExactSum(contexts=visited, steps=scorer.steps))


def remembers_all(model: TokenisedModel) -> bool:
    """Return True if contexts of a model never become equal: repeating one piece always leads to new contexts."""
    scorer = model.incremental_scorer()
    token = model.pieces.inventory.ids[:1]
    before, context = -1, scorer.begin()
    for _ in range(PROBE if model.longest is None else min(PROBE, model.longest - model.around[0])):
        before, context = context, int(scorer.extend(np.array([context]), token)[0])
    return before != context


def too_many_prefixes(lattice: Lattice, settings: EstimatorSettings) -> bool:
    """Return True if a model of infinite memory would visit more than ``settings.most_prefixes`` contexts."""
    return count_prefixes(lattice, settings.most_prefixes) > settings.most_prefixes


def _check_prefixes(model: TokenisedModel, lattice: Lattice, settings: EstimatorSettings) -> None:
    if too_many_prefixes(lattice, settings) and remembers_all(model):
        raise _too_many(settings)


def _too_many(settings: EstimatorSettings) -> TooManyContextsError:
    return TooManyContextsError(
        f"the segmentations of a text have more than {settings.most_prefixes:,} prefixes, the maximum that exact"
        " enumeration may visit; use dpf, or divide the text"
    )


def _extended(
    scorer: IncrementalScorer, states: States, at: IntArray, tokens: IntArray, budget: Budget, share: float
) -> tuple[States, IntArray]:
    """Extend states by tokens, except to improbable prefixes; return the new states and their numbers."""
    step = scorer.log_prob(states.context[at], tokens)
    check_numbers(step)
    extended = budget.keeps(states.log_p[at] + step, share)
    at, tokens, step = at[extended], tokens[extended], step[extended]
    context = scorer.extend(states.context[at], tokens) if len(at) else at
    return States(context, states.log_p[at] + step), extended


def bracket(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Compute the log of the sum of P over the segmentations with extended prefixes, a lower bound, and an upper bound.

    Raises:
        InputError: see `bracket_sum`.
    """
    return of_sum("bracket", bracket_sum(model, document, settings))


def bracket_sum(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> ExactSum:
    """Run the pass of `exact_sum` without prefixes that are improbable compared with T*.

    No segmentation is more probable than its prefix, so skipped segmentations have at most the P of skipped prefixes.
    They are chosen so that it sums to at most ``settings.tolerance * P(T*)``: at every position the least probable
    ones, up to an equal share of the remaining budget. If the model is sure of its segmentations, the pass is
    far shorter than enumeration, especially for short texts: early in a long text, no prefix is improbable
    compared with T*.

    Args:
        model: see `exact_sum`.
        document: see `exact_sum`.
        settings: ``tolerance``, and ``most_prefixes``, the maximum number of contexts to visit.

    Returns:
        The sum over the segmentations with extended prefixes, and ``log_upper``. If the model gives T*
        probability zero, none is skipped.

    Raises:
        InputError: see `exact_sum`; the number of contexts is not known before the pass.
    """
    likely = score_segmentations(model, document, [document.best])
    if likely.log_lower == -math.inf or settings.tolerance == 0.0:
        total = exact_sum(model, document, settings)
    else:
        spare = likely.log_lower + math.log(settings.tolerance)
        total = sum_over_contexts(model, document, settings, spare)
    return replace(total, steps=total.steps + likely.steps)
