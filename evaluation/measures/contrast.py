"""Means over training seeds and their differences, with intervals over sentences and over seeds.

Every seed of every model scores the same N sentences: sentences are crossed with seeds, and seeds are nested in models.
A seed's value is a ratio of sums over sentences, ``sum(total) / sum(count)``. A model's value is the mean over its K
seeds; the parameter is the expectation over sentences and over training seeds. The variance has two parts:

* sentences: the variance of the linearised ratios, averaged over seeds. It includes the interaction of sentences with
  seeds.
* seeds: for each model the variance between its K values, over K. It includes the interaction too, so that is
  subtracted once, by its estimate from the residuals of the table of seeds and sentences; the rest is at least 0.

The interval is Student's t with the degrees of freedom of Satterthwaite (1946), which are few where few seeds decide.
If sentences are few or skewed, the error of the sentences is from the studentised bootstrap, separately for each side:
see `truesource.evaluation.measures.bootstrap`. With one seed a model, the interval is the one of that module, and the
parameter is of these very models. ``benchmarks/coverage_models.py`` measures the coverage of intervals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from truesource.evaluation.measures.bootstrap import TAILS, Interval, resampled_ratio
from truesource.evaluation.measures.interval_ends import enclosing
from truesource.evaluation.measures.monte_carlo import holm
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.settings import DEFAULT_SEED

CHANCE = 0.05  #: a difference may be chance if its adjusted p-value is this or more


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
        """Influence of each sentence on the ratio of each seed, (K, N); rows sum to 0."""
        return np.asarray((self.total - self.values[:, None] * self.count) / self.count.sum(axis=1)[:, None])


@dataclass(frozen=True)
class Contrast:
    """A mean over seeds, or a difference of two, in the unit of the totals."""

    value: float
    low: float | None = None  #: of the 95% interval; None: there are too few sentences
    high: float | None = None
    p: float | None = None  #: two-sided, of the value 0; below 0.05 where the interval excludes 0

    def __post_init__(self) -> None:
        low, high = enclosing(self.value, self.low, self.high)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def interval(self) -> Interval:
        """The value with its ends."""
        return Interval(self.value, self.low, self.high)


def bonferroni(contrast: Contrast, tests: int = 1) -> float | None:
    """Adjust the p-value of a contrast that was selected among several; None if it has none.

    Args:
        contrast: the one of interest.
        tests: number of contrasts that it was selected from, itself included; for two of K groups, ``comb(K, 2)``.
    """
    return None if contrast.p is None else min(1.0, contrast.p * tests)


def may_be_chance(p_adjusted: float | None) -> bool:
    """Return True if a difference with this adjusted p-value may be chance; so may one without a p-value."""
    return p_adjusted is None or p_adjusted >= CHANCE


@dataclass(frozen=True)
class PairTest:
    """The difference of two of K models, with its p-value in their family of tests."""

    contrast: Contrast  #: the first less the second
    p_adjusted: float | None  #: by Holm's method over all pairs; None: there are too few sentences
    tests: int  #: number of tested pairs in the family

    @property
    def reversed(self) -> PairTest:
        """The second less the first."""
        return PairTest(negated(self.contrast), self.p_adjusted, self.tests)


@dataclass(frozen=True)
class PairFamily:
    """Two-sided tests of all pairwise differences of K models, adjusted together by Holm's method.

    A table of differences from any baseline and a sentence about any two models, such as the two that came out best,
    take their p-values from here: they never contradict each other, and all of them together are wrong in at most 5%
    of cases, whichever pairs were selected after looking.
    """

    pairs: Mapping[tuple[str, str], PairTest]  #: by names, the later model first

    @classmethod
    def test(cls, names: Sequence[str], contrast: Callable[[str, str], Contrast]) -> PairFamily:
        """Test all pairs.

        Args:
            names: of the K models.
            contrast: the difference of two of them, the first less the second.
        """
        contrasts = {(later, earlier): contrast(later, earlier) for earlier, later in combinations(names, 2)}
        tested = {pair: each.p for pair, each in contrasts.items() if each.p is not None}
        adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
        return cls({pair: PairTest(of, adjusted.get(pair), len(tested)) for pair, of in contrasts.items()})

    def of(self, first: str, second: str) -> PairTest:
        """Return the difference of two models, the first less the second.

        Raises:
            KeyError: there is no such pair.
        """
        test = self.pairs.get((first, second))
        return self.pairs[second, first].reversed if test is None else test


def negated(contrast: Contrast) -> Contrast:
    """Return a difference the other way round."""
    if contrast.low is None or contrast.high is None:
        return Contrast(-contrast.value)
    return Contrast(-contrast.value, -contrast.high, -contrast.low, contrast.p)


class SeedPart(NamedTuple):
    """Part of the seeds of one model in the variance of its mean."""

    variance: float  #: without the interaction with sentences
    whole: float  #: with it, as observed
    degrees: int  #: of freedom of the observed variance


def mean_over_seeds(model: SeedSums, *, seed: int = DEFAULT_SEED) -> Contrast:
    """Return the mean over the seeds of one model.

    Args:
        model: of K seeds.
        seed: of the resampling.
    """
    return _contrast([(1.0, model)], seed)


def difference(model: SeedSums, baseline: SeedSums, *, seed: int = DEFAULT_SEED) -> Contrast:
    """Return the mean over the seeds of one model less the mean over the seeds of another.

    Args:
        model: of K seeds.
        baseline: of any number of seeds; the same N sentences.
        seed: of the resampling.
    """
    return _contrast([(1.0, model), (-1.0, baseline)], seed)


def mean_over_texts(texts: Sequence[tuple[SeedSums, SeedSums | None]], *, seed: int = DEFAULT_SEED) -> Contrast:
    """Return the unweighted mean over several texts of models' means, or of their differences.

    The texts are fixed: the interval is about other sentences of the same texts and other training seeds. Texts are
    independent of each other, as are the seeds of one model on different texts, so that variances add up.

    Args:
        texts: of each, the sums of a model, and the sums of a baseline that is subtracted, or None.
        seed: of the resampling.
    """
    contrasts = [
        _both_errors([(1.0, model), *([] if baseline is None else [(-1.0, baseline)])], seed)
        for model, baseline in texts
    ]
    value = math.fsum(each.value for each in contrasts) / len(contrasts)
    if any(each.below is None or each.above is None for each in contrasts):
        return Contrast(value)
    below = _Side.mean([each.below for each in contrasts if each.below is not None])
    above = _Side.mean([each.above for each in contrasts if each.above is not None])
    return Contrast(value, value - below.half, value + above.half, (below if value > 0.0 else above).p(value))


def seed_part(model: SeedSums) -> SeedPart | None:
    """Return the part of the seeds of one model; None of a single seed."""
    k = model.seeds
    if k == 1:
        return None
    influence = model.influence
    between = float(model.values.var(ddof=1))
    interaction = float(np.square(influence - influence.mean(axis=0)).sum()) / (k - 1)
    return SeedPart(max(between - interaction, 0.0) / k, between / k, k - 1)


def _contrast(sides: Sequence[tuple[float, SeedSums]], seed: int) -> Contrast:
    errors = _both_errors(sides, seed)
    if errors.below is None or errors.above is None:
        return Contrast(errors.value)
    side = errors.below if errors.value > 0.0 else errors.above
    if errors.replicated:
        return Contrast(
            errors.value, errors.value - errors.below.half, errors.value + errors.above.half, side.p(errors.value)
        )
    return Contrast(errors.value, *errors.ends, side.p(errors.value))


def _both_errors(sides: Sequence[tuple[float, SeedSums]], seed: int) -> _TwoSidedErrors:
    value = math.fsum(sign * float(side.values.mean()) for sign, side in sides)
    influence = np.sum([sign * side.influence.mean(axis=0) for sign, side in sides], axis=0)
    # one ratio of this value and these influences: with equal counts, the ratio of the differences of the totals
    count = np.mean([side.count.mean(axis=0) for _, side in sides], axis=0)
    counted = count > 0.0
    sentences = int(counted.sum())
    total = value * count + influence * count.sum()
    ends = resampled_ratio(total[counted], count[counted], seed=seed)
    if not np.isfinite(ends).all():
        return _TwoSidedErrors(value)
    parts = [part for _, side in sides if (part := seed_part(side)) is not None]
    below, above = (_Side.of(abs(float(end) - value), sentences, parts) for end in ends)
    return _TwoSidedErrors(value, (float(ends[0]), float(ends[1])), below, above, bool(parts))


class _TwoSidedErrors(NamedTuple):
    """A contrast with its errors to both sides; no errors if there are too few sentences."""

    value: float
    ends: tuple[float, float] = (math.nan, math.nan)  #: of the sentences alone
    below: _Side | None = None
    above: _Side | None = None
    replicated: bool = False  #: whether a model has several seeds


class _Side(NamedTuple):
    """The error of a contrast to one side, and its degrees of freedom."""

    error: float
    degrees: float

    @classmethod
    def of(cls, half: float, sentences: int, parts: Sequence[SeedPart]) -> _Side:
        """Combine half the interval of the sentences alone with the parts of the seeds."""
        free = sentences - 1
        of_sentences = (half / float(stdtrit(free, TAILS[1]))) ** 2
        variance = of_sentences + sum(part.variance for part in parts)
        spread = of_sentences**2 / free + sum(part.whole**2 / part.degrees for part in parts)
        return cls(math.sqrt(variance), variance**2 / spread if spread > 0.0 else float(free))

    @classmethod
    def mean(cls, sides: Sequence[_Side]) -> _Side:
        """Combine the errors of independent estimates to the error of their mean."""
        variances = [side.error**2 / len(sides) ** 2 for side in sides]
        total = math.fsum(variances)
        spread = math.fsum(v**2 / side.degrees for v, side in zip(variances, sides, strict=True))
        return cls(math.sqrt(total), total**2 / spread if spread > 0.0 else min(side.degrees for side in sides))

    @property
    def half(self) -> float:
        return self.error * float(stdtrit(self.degrees, TAILS[1]))

    def p(self, value: float) -> float:
        if value == 0.0:
            return 1.0
        if self.error == 0.0:
            return 0.0
        return 2.0 * float(stdtr(self.degrees, -abs(value) / self.error))
