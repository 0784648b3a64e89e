"""What an estimator of a marginal likelihood returns, and what it is given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.special import ndtri, stdtrit

from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.generator.language_model import PieceText
from truesource.grammar.support.arrays import IntArray

TAIL = 0.025  #: beyond either end of an interval
UNLISTED = 0.05  #: most of ``sqrt(unlisted)`` with an error bar; beyond, it says nothing of what a model gives the rest

#: exact; lower: certainly at most the truth; unbiased: its expectation (not that of its logarithm) is the truth;
#: part: its expectation is a sum that leaves some segmentations out, so it is low on average
Bound = Literal["exact", "lower", "unbiased", "part"]


@dataclass(frozen=True)
class Document:
    """One text whose probability is wanted."""

    text: PieceText
    lattice: Lattice
    best: IntArray  #: arcs of T*, the canonical tokenisation, in ``lattice``


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """An estimate of log P(D), the log probability of one text under a model of pieces."""

    estimator: str
    log_p: float  #: nats; -inf only where the model gives probability zero to all it could see
    bound: Bound
    relative_variance: float | None = None  #: unbiased estimate of the variance, over the square of the estimate
    ess: float | None = None  #: effective number of weighted samples, (sum w)^2 / sum w^2; None where nothing is drawn
    max_share: float | None = None  #: share of the largest weight
    log_lower: float  #: log of the sum of P over all distinct segmentations scored: certainly at most log P(D), nats
    steps: int  #: token-steps of the model
    cuts: int  #: distinct segmentations (or prefixes of segmentations, for guided estimators) that were scored
    log_upper: float | None = None  #: certainly at least log P(D), nats; None: nothing but 0 is known
    degrees: int | None = None  #: of freedom of ``relative_variance``, filters less one; None: many
    #: variance by segmentations that are drawn rarely and weigh much, which the spread of filters can miss: the squared
    #: shares of words' segmentations that are on no list, by the scores that draw them, summed over words
    unlisted: float = 0.0

    @property
    def variance(self) -> float | None:
        """Of ``log_p``, by the delta method; 0 where exact; None where nothing gives it, or too much is unlisted."""
        if self.bound == "exact":
            return 0.0
        if self.unlisted > UNLISTED**2:
            return None
        return None if self.relative_variance is None else max(self.relative_variance, 0.0) + self.unlisted

    @property
    def standard_error(self) -> float | None:
        """Of ``log_p``, nats."""
        return None if self.variance is None else math.sqrt(self.variance)

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% interval of log P(D), nats; None without an error bar, as of a lower bound."""
        if self.variance is None or self.bound not in ("exact", "unbiased"):
            return None
        return log_interval(self.log_p, self.variance, degrees_of([self]))


def degrees_of(estimates: Sequence[Estimate]) -> float:
    """Degrees of freedom of the sum of their variances (Satterthwaite 1946); infinite where none is uncertain."""
    uncertain = math.fsum(max(one.relative_variance or 0.0, 0.0) ** 2 / one.degrees for one in estimates if one.degrees)
    whole = math.fsum(one.variance or 0.0 for one in estimates)
    return whole**2 / uncertain if uncertain > 0.0 else math.inf


def log_interval(log_p: float, variance: float, degrees: float) -> tuple[float, float]:
    """95% interval of a sum of logarithms, of which unbiased estimates are known.

    By Student's t, since a variance over a few filters is itself uncertain: of two filters it is often far too small.
    The logarithm of an unbiased estimate is too low by half its variance, so the interval is about ``log_p`` and that.

    Args:
        log_p: sum of the logarithms of the estimates, nats.
        variance: relative variances of the estimates, summed.
        degrees: of freedom of ``variance``.
    """
    half = student(TAIL, degrees) * math.sqrt(variance)
    return log_p + variance / 2.0 - half, log_p + variance / 2.0 + half


def student(tail: float, degrees: float) -> float:
    """Quantile of Student's t at ``1 - tail``; of the normal distribution where the degrees are infinite."""
    return -float(ndtri(tail) if math.isinf(degrees) else stdtrit(degrees, tail))
