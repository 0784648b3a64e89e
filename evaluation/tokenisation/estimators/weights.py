"""Segmentations scored by a model, each distinct one once, and sums over all segmentations from weighted ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation.documents import Document, check_window, most_pieces
from truesource.generator.piece_model import IncrementalScorer, TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError


@dataclass(frozen=True)
class WeightedSum:
    """An estimate of a sum of probabilities from drawn weights, and a part of the sum that is known."""

    log_p: float  #: of the estimate, nats; -inf where every weight is zero
    relative_variance: float | None  #: unbiased estimate of the variance, over the squared estimate; None: none
    ess: float  #: (sum w)^2 / sum w^2 of the drawn weights; 0 where all are zero
    max_share: float | None  #: of the largest drawn weight in the estimate; None where the estimate is zero


def log_sum(logs: FloatArray) -> float:
    """Log of the sum of exponentials, nats; -inf for none."""
    top = logs.max(initial=-math.inf)
    if top == -math.inf:
        return -math.inf
    return float(top + math.log(np.exp(logs - top).sum()))


def log1mexp(x: FloatArray) -> FloatArray:
    """Log of 1 - exp(x) for x <= 0, -inf at 0 (Maechler 2012)."""
    x = np.asarray(x, dtype=np.float64)
    result = np.full_like(x, -math.inf)
    near = (x < 0.0) & (x > -math.log(2.0))
    far = x <= -math.log(2.0)
    result[near] = np.log(-np.expm1(x[near]))
    result[far] = np.log1p(-np.exp(x[far]))
    return result


def mean_of_weights(log_w: FloatArray, certain: float = -math.inf) -> WeightedSum:
    """Importance sampling with replacement: the mean of the weights P/Q estimates what was drawn from.

    The variance of a mean is the sample variance of its m terms over m, so there is none at m = 1.

    Args:
        log_w: (m,) log weights of the draws, nats; m >= 1.
        certain: log of what is known and not drawn from, nats.
    """
    m = len(log_w)
    log_p = float(np.logaddexp(certain, log_sum(log_w) - math.log(m)))
    if log_p == -math.inf:
        return WeightedSum(log_p, None, 0.0, None)
    shares = np.exp(log_w - math.log(m) - log_p)  # of the estimate; they sum to 1 with what is certain
    variance = float(shares.var(ddof=1)) * m if m > 1 else None
    return WeightedSum(log_p, variance, _ess(log_w), float(shares.max()))


def sum_of_inclusions(log_p: FloatArray, log_inclusion: FloatArray, certain: float = -math.inf) -> WeightedSum:
    """Draws without replacement: the sum of P over the probability of exceeding the threshold (Kool et al. 2019).

    Given the threshold each segmentation is in or not independently of the others, and sum P^2 (1-q)/q^2 over the
    segmentations drawn is an unbiased estimate of the variance.

    Args:
        log_p: (k,) log P of the distinct draws, nats.
        log_inclusion: (k,) log q_kappa of each, nats; 0 where all segmentations are here.
        certain: log of what is known and not drawn from, nats.
    """
    log_w = log_p - log_inclusion
    total = float(np.logaddexp(certain, log_sum(log_w)))
    if total == -math.inf:
        return WeightedSum(total, None, 0.0, None)
    spread = 2.0 * (log_w - total) + log1mexp(log_inclusion)
    return WeightedSum(total, math.exp(log_sum(spread)), _ess(log_w), float(np.exp(log_w.max() - total)))


def _ess(log_w: FloatArray) -> float:
    top = log_w.max()
    if top == -math.inf:
        return 0.0
    w = np.exp(log_w - top)
    return float(w.sum() ** 2 / np.square(w).sum())


@dataclass(frozen=True)
class ScoredSegmentations:
    """Log P of some segmentations."""

    log_p: FloatArray  #: (k,) of each segmentation given, nats; -inf where its probability is zero, or it does not fit
    log_lower: float  #: log of the sum of P over the distinct ones: certainly at most log P(D), nats
    steps: int  #: tokens that the model was run at: of each distinct segmentation, the token before it, and padding
    distinct: int  #: how many different segmentations the model read


def score_segmentations(
    model: TokenisedModel, document: Document, segmentations: Sequence[NDArray[np.integer]]
) -> ScoredSegmentations:
    """Score segmentations in one call of the model; those that do not fit its window have probability zero.

    Args:
        model: of the pieces in the lattice.
        document: with the lattice of its segmentations.
        segmentations: arc numbers of each; equal ones are scored once.

    Raises:
        InputError: the canonical tokenisation does not fit the window, or the model gives a probability that is no
            number.
    """
    check_window(model, document)
    tokens = model.pieces.inventory.ids[document.lattice.piece]
    numbers: dict[bytes, int] = {}
    rows: list[IntArray] = []
    which = np.empty(len(segmentations), dtype=np.int64)
    for i, arcs in enumerate(segmentations):
        row = tokens[arcs]
        which[i] = numbers.setdefault(row.tobytes(), len(rows))
        if which[i] == len(rows):
            rows.append(row)
    most = most_pieces(model)
    fits = np.array([most is None or len(row) <= most for row in rows])
    read = [row for row, fit in zip(rows, fits.tolist(), strict=True) if fit]
    log_p = np.full(len(rows), -np.inf)
    if read:
        log_p[fits] = model.log_probs(read)
    check_numbers(log_p)
    return ScoredSegmentations(log_p[which], log_sum(log_p), model.token_steps(read) if read else 0, len(read))


def check_numbers(log_p: FloatArray) -> None:
    """Check that log probabilities are numbers; -inf is one.

    Raises:
        InputError: one is not.
    """
    if np.isnan(log_p).any() or (log_p == np.inf).any():
        raise InputError("the model gives a probability that is not a number: its weights are damaged, or it overflows")


def unique_pairs(one: IntArray, two: IntArray) -> tuple[IntArray, IntArray]:
    """The different pairs, (U, 2) in ascending order, and the number of each of the R given ones among them, (R,)."""
    pairs, of = np.unique(np.stack([one, two], axis=1), axis=0, return_inverse=True)
    return pairs, of.reshape(-1)


def extend(scorer: IncrementalScorer, contexts: IntArray, tokens: IntArray) -> IntArray:
    """(R,) contexts each continued by a piece; equal pairs are run once."""
    if not len(contexts):
        return contexts
    pairs, of = unique_pairs(contexts, tokens)
    return scorer.extend(pairs[:, 0], pairs[:, 1])[of]


def drawn(log_weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """(R,) a column for each row of (R, M) log weights, in proportion to the weights; each row has a finite one."""
    shares = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    cumulative = np.cumsum(shares, axis=1)
    below = cumulative <= rng.random(len(shares))[:, None] * cumulative[:, -1:]
    last = shares.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0.0, axis=1)
    column: IntArray = np.minimum(below.sum(axis=1), last)
    return column
