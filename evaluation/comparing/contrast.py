"""Means over training seeds and differences of them, with intervals over sentences and over seeds.

Every seed of every model scores the same N sentences: sentences are crossed with seeds, and seeds are nested in models.
A seed's value is a ratio of sums over sentences, ``sum(total) / sum(count)``. A model's value is the mean over its K
seeds; the parameter is the expectation over sentences and over training seeds. The variance has two parts:

* sentences: that of the linearised ratios, averaged over seeds. It includes the interaction of sentences with seeds.
* seeds: for each model the variance between its K values, over K. It includes the interaction too, so that is
  subtracted once, by its estimate from the residuals of the table of seeds and sentences; the rest is never below 0.

The interval is Student's t with the degrees of freedom of Satterthwaite (1946), which are few where few seeds decide.
Where sentences are few or skewed, the error of the sentences is that of the studentised bootstrap, for each side of
its own: see `truesource.evaluation.measures.bootstrap`. With one seed a model, the interval is the one of that module,
and the parameter is that of these very models. ``benchmarks/coverage_models.py`` measures how often intervals hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from truesource.evaluation.measures.bootstrap import TAILS, Interval, resampled_ratio
from truesource.grammar.support.arrays import FloatArray


@dataclass(frozen=True)
class SeedSums:
    """Sums per sentence of the K seeds of one model."""

    total: FloatArray  #: (K, N)
    count: FloatArray  #: (K, N) scored positions, 0 where a sentence has none

    @property
    def seeds(self) -> int:
        """K."""
        return len(self.total)

    @property
    def values(self) -> FloatArray:
        """The ratio of each seed, (K,)."""
        return np.asarray(self.total.sum(axis=1) / self.count.sum(axis=1))

    @property
    def influence(self) -> FloatArray:
        """What each sentence adds to the ratio of each seed, (K, N); rows sum to 0."""
        return np.asarray((self.total - self.values[:, None] * self.count) / self.count.sum(axis=1)[:, None])


@dataclass(frozen=True)
class Contrast:
    """A mean over seeds, or a difference of two, in the unit of the totals."""

    value: float
    low: float | None = None  #: of the 95% interval; None: there are too few sentences
    high: float | None = None
    p: float | None = None  #: two-sided, of the value 0; below 0.05 where the interval leaves out 0

    @property
    def interval(self) -> Interval:
        """The value with its ends."""
        return Interval(self.value, self.low, self.high)


class SeedPart(NamedTuple):
    """What the seeds of one model add to the variance of its mean."""

    variance: float  #: without the interaction with sentences
    whole: float  #: with it, which is what is observed
    degrees: int  #: of freedom that it is observed with


def mean_over_seeds(model: SeedSums, *, seed: int = 0) -> Contrast:
    """The mean over the seeds of one model.

    Args:
        model: of K seeds.
        seed: of the resampling.
    """
    return _contrast([(1.0, model)], seed)


def difference(model: SeedSums, baseline: SeedSums, *, seed: int = 0) -> Contrast:
    """The mean over the seeds of one model less that over the seeds of another.

    Args:
        model: of K seeds.
        baseline: of as many seeds or of others; the same N sentences.
        seed: of the resampling.
    """
    return _contrast([(1.0, model), (-1.0, baseline)], seed)


def seed_part(model: SeedSums) -> SeedPart | None:
    """The part of the seeds of one model; None of a single seed."""
    k = model.seeds
    if k == 1:
        return None
    influence = model.influence
    between = float(model.values.var(ddof=1))
    interaction = float(np.square(influence - influence.mean(axis=0)).sum()) / (k - 1)
    return SeedPart(max(between - interaction, 0.0) / k, between / k, k - 1)


def _contrast(sides: Sequence[tuple[float, SeedSums]], seed: int) -> Contrast:
    value = math.fsum(sign * float(side.values.mean()) for sign, side in sides)
    influence = np.sum([sign * side.influence.mean(axis=0) for sign, side in sides], axis=0)
    # one ratio of this value and these influences: where all counts are equal, that of the differences of the totals
    count = np.mean([side.count.mean(axis=0) for _, side in sides], axis=0)
    counted = count > 0.0
    sentences = int(counted.sum())
    total = value * count + influence * count.sum()
    ends = resampled_ratio(total[counted], count[counted], seed=seed)
    if not np.isfinite(ends).all():
        return Contrast(value)
    parts = [part for _, side in sides if (part := seed_part(side)) is not None]
    below, above = (_Side.of(abs(float(end) - value), sentences, parts) for end in ends)
    low, high = (value - below.half, value + above.half) if parts else map(float, ends)
    return Contrast(value, low, high, (below if value > 0.0 else above).p(value))


class _Side(NamedTuple):
    """The error of a contrast to one side, and its degrees of freedom."""

    error: float
    degrees: float

    @classmethod
    def of(cls, half: float, sentences: int, parts: Sequence[SeedPart]) -> _Side:
        """From half the interval of the sentences alone, and the parts of the seeds."""
        free = sentences - 1
        own = (half / student.ppf(TAILS[1], free)) ** 2
        variance = own + sum(part.variance for part in parts)
        spread = own**2 / free + sum(part.whole**2 / part.degrees for part in parts)
        return cls(math.sqrt(variance), variance**2 / spread if spread > 0.0 else free)

    @property
    def half(self) -> float:
        return self.error * float(student.ppf(TAILS[1], self.degrees))

    def p(self, value: float) -> float:
        if value == 0.0:
            return 1.0
        if self.error == 0.0:
            return 0.0
        return 2.0 * float(student.sf(abs(value) / self.error, self.degrees))
