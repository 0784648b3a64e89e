"""The exact probability of a text, or certain bounds of it: a forward pass over its positions, with contexts as states.

Models of finite memory come to the same context by many segmentations, and the pass is the product of lattice and
automaton. Networks never do, and the pass enumerates the segmentations, each common beginning once. `bracket` leaves
improbable beginnings out.
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
FORGET = 1024  #: new contexts after which those no longer needed are forgotten
PROBE = 12  #: pieces after which a model of finite memory is expected to have forgotten where it began


@dataclass(frozen=True)
class States:
    """Contexts at one position, and the sum over the segmentations that lead there."""

    context: IntArray  #: (R,)
    log_p: FloatArray  #: (R,) of the text so far, summed over the segmentations that lead here

    @classmethod
    def joined(cls, parts: Sequence[States]) -> States:
        """Several sets as one, equal contexts made one."""
        context = np.concatenate([np.empty(0, np.int64), *(part.context for part in parts)])
        log_p = np.concatenate([np.empty(0), *(part.log_p for part in parts)])
        different, group = np.unique(context, return_inverse=True)
        if len(different) == len(context):
            return cls(context, log_p)
        order = np.lexsort((-log_p, group))  # the likeliest of each group first
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        top = log_p[order[starts]]
        weight = np.exp(log_p[order] - np.repeat(top, np.diff(np.append(starts, len(order)))))
        return cls(different, top + np.log(np.add.reduceat(weight, starts)))

    def where(self, which: BoolArray) -> States:
        """Some of the states."""
        return States(self.context[which], self.log_p[which])


class Budget:
    """Probability of beginnings that may be left, and what was lost."""

    def __init__(self, spare: float) -> None:
        self._spare = spare  # log of all of it, nats; -inf: none
        self._left = 1.0  # of it
        self.log_dropped = -math.inf

    def lose(self, log_p: FloatArray) -> None:
        """Count beginnings that cannot be followed, whatever they would cost."""
        self.log_dropped = float(np.logaddexp.reduce(np.append(log_p, self.log_dropped)))

    def keeps(self, log_p: FloatArray, share: float) -> IntArray:
        """Numbers of the beginnings to follow; the least probable are left, to a share of what there is to spend."""
        order = np.argsort(log_p, kind="stable")
        log_p = log_p[order]
        at = int(np.searchsorted(log_p, -math.inf, side="right"))  # impossible ones cost nothing
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
    """Results of one pass over all segmentations of a text."""

    log_p: float = -math.inf  #: log of the sum of P over all segmentations, nats; -inf where all have probability zero
    #: log of the P of the beginnings that were not followed to the end, nats; -inf: all were
    log_dropped: float = -math.inf
    contexts: int  #: pairs of a position and a context that were visited, the empty text included
    steps: int  #: token-steps of the model

    @property
    def log_upper(self) -> float:
        """Certainly at least log P(D): no segmentation is more probable than its beginning, nats."""
        return float(np.logaddexp(self.log_p, self.log_dropped))


def exact(model: TokenisedModel, document: Document, settings: EstimatorSettings) -> Estimate:
    """Log P(D) by a sum over all segmentations; a lower bound where some do not fit the model's window.

    Raises:
        InputError: the model's window is too short for the canonical tokenisation, or there are too many contexts.
    """
    return of_sum("exact", exact_sum(model, document, settings))


def of_sum(name: str, total: ExactSum) -> Estimate:
    """The estimate from a sum: exact, or between two bounds where some beginnings were not followed to the end."""
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
    """Different prefixes of segmentations, the empty one and whole ones included; counting stops beyond ``most``."""
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
    """Sum of P over all segmentations of a text that fit the model's window.

    The P of the beginnings that fill the window before the text is over is ``log_dropped``.

    Args:
        model: read through its `incremental_scorer`; contexts that are no longer needed are forgotten.
        document: with the lattice of its segmentations.
        settings: ``most_prefixes`` is the most contexts that may be visited.

    Raises:
        InputError: the model's window is too short for the canonical tokenisation, the segmentations have too many
            contexts (of a model that remembers everything, all counted before it is run), or the model gives a
            probability that is no number.
    """
    _check_prefixes(model, document.lattice, settings)
    return sum_over_contexts(model, document, settings)


def sum_over_contexts(
    model: TokenisedModel, document: Document, settings: EstimatorSettings, spare: float = -math.inf
) -> ExactSum:
    """`exact_sum` at a cost found out on the way; beginnings may be left whose P sum to exp(spare) in all, nats."""
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
    visited = made = 0
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
            new, kept = _extended(scorer, states, source, tokens[arc], budget, share)
            made += len(kept)
            ends = target[arc[kept]]
            for end in np.unique(ends).tolist():
                waiting[end].append(new.where(ends == end))
            if made > FORGET:
                here = states.context[(low + CHUNK) // len(arcs) :]
                scorer.keep(np.unique(np.concatenate([here, *(s.context for later in waiting for s in later)])))
                made = 0
    at_end = np.empty(len(states.context))
    for low in range(0, len(states.context), CHUNK):
        scorer.keep(np.unique(states.context[low:]))
        at_end[low : low + CHUNK] = scorer.log_end(states.context[low : low + CHUNK])
    return _sum_at_end(states, at_end, ExactSum(log_dropped=budget.log_dropped, contexts=visited, steps=scorer.steps))


def _sum_at_end(states: States, at_end: FloatArray, counts: ExactSum) -> ExactSum:
    """Add the sum over the states of the last position, each with the log probability that the text ends (R,)."""
    check_numbers(at_end)
    weights = states.log_p + at_end
    return replace(counts, log_p=log_sum(weights[at_end > -math.inf]))


def _in_one_pass(
    scorer: IncrementalScorer, lattice: Lattice, tokens: IntArray, settings: EstimatorSettings
) -> ExactSum:
    """`sum_over_contexts` of a model that passes over a whole lattice by itself."""
    assert isinstance(scorer, LatticeScorer)
    sums = scorer.sum_paths(lattice.source.astype(np.int64), lattice.first, tokens, settings.most_prefixes)
    visited = len(sums.context)
    if visited > settings.most_prefixes:
        raise _too_many(settings)
    last = slice(int(sums.first[lattice.n]), int(sums.first[lattice.n + 1]))
    states = States(sums.context[last], sums.log_p[last])
    return _sum_at_end(states, scorer.log_end(states.context), ExactSum(contexts=visited, steps=scorer.steps))


def remembers_all(model: TokenisedModel) -> bool:
    """Return True if contexts of a model never become equal: one piece read over and over leads to ever new ones."""
    scorer = model.incremental_scorer()
    token = model.pieces.inventory.ids[:1]
    before, context = -1, scorer.begin()
    for _ in range(PROBE if model.longest is None else min(PROBE, model.longest - model.around[0])):
        before, context = context, int(scorer.extend(np.array([context]), token)[0])
    return before != context


def too_many_prefixes(lattice: Lattice, settings: EstimatorSettings) -> bool:
    """Return True if a model that remembers everything would visit more than ``settings.most_prefixes`` contexts."""
    return count_prefixes(lattice, settings.most_prefixes) > settings.most_prefixes


def _check_prefixes(model: TokenisedModel, lattice: Lattice, settings: EstimatorSettings) -> None:
    if too_many_prefixes(lattice, settings) and remembers_all(model):
        raise _too_many(settings)


def _too_many(settings: EstimatorSettings) -> TooManyContextsError:
    return TooManyContextsError(
        f"the segmentations of a text have more than {settings.most_prefixes:,} prefixes, the most that exact"
        " enumeration may visit; use dpf, or divide the text"
    )


def _extended(
    scorer: IncrementalScorer, states: States, at: IntArray, tokens: IntArray, budget: Budget, share: float
) -> tuple[States, IntArray]:
    """The states that tokens lead to, each from the state beside it, but for improbable ones; numbers of those kept."""
    step = scorer.log_prob(states.context[at], tokens)
    check_numbers(step)
    kept = budget.keeps(states.log_p[at] + step, share)
    at, tokens, step = at[kept], tokens[kept], step[kept]
    context = scorer.extend(states.context[at], tokens) if len(at) else at
    return States(context, states.log_p[at] + step), kept


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
        The sum over the segmentations that were followed; with ``log_upper``. If the model gives T*
        probability zero, all are followed.

    Raises:
        InputError: as for `exact_sum`; how many contexts there are is found out on the way.
    """
    likely = score_segmentations(model, document, [document.best])
    if likely.log_lower == -math.inf or settings.tolerance == 0.0:
        total = exact_sum(model, document, settings)
    else:
        spare = likely.log_lower + math.log(settings.tolerance)
        total = sum_over_contexts(model, document, settings, spare)
    return replace(total, steps=total.steps + likely.steps)
