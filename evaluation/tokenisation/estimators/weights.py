"""The sum over all segmentations from some weighted ones: estimate, variance, effective number, largest share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from truesource.grammar.support.arrays import FloatArray


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
    found = np.full_like(x, -math.inf)
    near = (x < 0.0) & (x > -math.log(2.0))
    far = x <= -math.log(2.0)
    found[near] = np.log(-np.expm1(x[near]))
    found[far] = np.log1p(-np.exp(x[far]))
    return found


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
