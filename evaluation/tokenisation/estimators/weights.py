"""Scores of distinct segmentations under a model, and sums over all segmentations from weighted ones."""

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
    """An estimate of a sum of probabilities from sampled weights, plus a known part of the sum."""

    log_p: float  #: log of the estimate, nats; -inf if every weight is zero
    relative_variance: float | None  #: unbiased estimate of the variance, over the squared estimate; None: unknown
    ess: float  #: (sum w)^2 / sum w^2 of the sampled weights; 0 if all are zero
    max_share: float | None  #: share of the largest sampled weight in the estimate; None if the estimate is zero


def log_sum(logs: FloatArray) -> float:
    """Compute the log of the sum of exponentials, nats; -inf for an empty array."""
    top = logs.max(initial=-math.inf)
    if top == -math.inf:
        return -math.inf
    return float(top + math.log(np.exp(logs - top).sum()))


def log1mexp(x: FloatArray) -> FloatArray:
    """Compute log(1 - exp(x)) for x <= 0, -inf at 0 (Maechler 2012)."""
    x = np.asarray(x, dtype=np.float64)
    result = np.full_like(x, -math.inf)
    near = (x < 0.0) & (x > -math.log(2.0))
    far = x <= -math.log(2.0)
    result[near] = np.log(-np.expm1(x[near]))
    result[far] = np.log1p(-np.exp(x[far]))
    return result


def mean_of_weights(log_w: FloatArray, certain: float = -math.inf) -> WeightedSum:
    """Estimate a sum by importance sampling with replacement: the mean of the weights P/Q.

    The variance of a mean is the sample variance of its m terms over m, so it is unknown at m = 1.

    Args:
        log_w: log weights of the samples, (m,) nats; m >= 1.
        certain: log of the known part, which is not sampled, nats.
    """
    m = len(log_w)
    log_p = float(np.logaddexp(certain, log_sum(log_w) - math.log(m)))
    if log_p == -math.inf:
        return WeightedSum(log_p, None, 0.0, None)
    shares = np.exp(log_w - math.log(m) - log_p)  # shares of the estimate; with the known part, they sum to 1
    variance = float(shares.var(ddof=1)) * m if m > 1 else None
    return WeightedSum(log_p, variance, _ess(log_w), float(shares.max()))


def sum_of_inclusions(log_p: FloatArray, log_inclusion: FloatArray, certain: float = -math.inf) -> WeightedSum:
    """Estimate a sum from samples without replacement: P over the probability of inclusion (Kool et al. 2019).

    Given the threshold, segmentations are included independently of each other, and sum P^2 (1-q)/q^2 over the
    sampled segmentations is an unbiased estimate of the variance.

    Args:
        log_p: log P of the distinct samples, (k,) nats.
        log_inclusion: log q_kappa of each, (k,) nats; 0 if all segmentations are included.
        certain: log of the known part, which is not sampled, nats.
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
    """The log P of segmentations."""

    log_p: FloatArray  #: (k,) log P of each segmentation, nats; -inf if its probability is zero, or it does not fit
    log_lower: float  #: log of the sum of P over the distinct ones: certainly at most log P(D), nats
    steps: int  #: number of tokens that the model read: distinct segmentations, tokens before them, and padding
    distinct: int  #: number of distinct segmentations that the model read


def score_segmentations(
    model: TokenisedModel, document: Document, segmentations: Sequence[NDArray[np.integer]]
) -> ScoredSegmentations:
    """Score segmentations in one call of the model; those that do not fit its window have probability zero.

    Args:
        model: model of the pieces in the lattice.
        document: document with the lattice of its segmentations.
        segmentations: arc numbers of each segmentation; equal ones are scored once.

    Raises:
        InputError: the canonical tokenisation does not fit the window, or the model gives a probability that is not a
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
        InputError: one is not a number.
    """
    if np.isnan(log_p).any() or (log_p == np.inf).any():
        raise InputError("the model gives a probability that is not a number: its weights are damaged, or it overflows")


def unique_pairs(one: IntArray, two: IntArray) -> tuple[IntArray, IntArray]:
    """Return distinct pairs, (U, 2) in ascending order, and the index of each of the R input pairs, (R,)."""
    pairs, of = np.unique(np.stack([one, two], axis=1), axis=0, return_inverse=True)
    return pairs, of.reshape(-1)


def extend(scorer: IncrementalScorer, contexts: IntArray, tokens: IntArray) -> IntArray:
    """Continue each context by a piece; equal pairs run once; return contexts (R,)."""
    if not len(contexts):
        return contexts
    pairs, of = unique_pairs(contexts, tokens)
    return scorer.extend(pairs[:, 0], pairs[:, 1])[of]


def drawn(log_weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Sample a column for each row of (R, M) log weights, (R,), by weight; each row has a finite one."""
    shares = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    cumulative = np.cumsum(shares, axis=1)
    below = cumulative <= rng.random(len(shares))[:, None] * cumulative[:, -1:]
    last = shares.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0.0, axis=1)
    column: IntArray = np.minimum(below.sum(axis=1), last)
    return column
