"""95% intervals from resampled sentences: the studentised bootstrap (Efron & Tibshirani 1993, chapter 12.5).

Percentiles of resampled values are too narrow for few sentences: a sample has a smaller spread than its source, and
with skewness, a mean that is too low comes with a spread that is too small. So each resample is divided by its own
standard error: the quantiles of ``(value* - value) / error*`` replace the quantiles of Student's t. Errors are of the
linearised statistic (the delta method, with sentences as the independent units). They are at least `FLOOR` times the
error of all sentences (Polansky 2000), since a resample without the one sentence that differs would make an infinite
interval. ``benchmarks/coverage.py`` measures the coverage of these intervals.

From `LARGE` sentences, if by the third moment resamples would move neither tail by half a percentage point, the normal
limit is used: ``value +- t error``. Below `FEWEST` sentences there is no interval.

`proportion` has the interval of a share of items, several of which may belong to one sentence (Wilson 1927);
`perplexities` are of a model and of the oracle, pooled over the corpus.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from truesource.evaluation.measures.interval_ends import enclosing
from truesource.evaluation.measures.paired import Paired
from truesource.generator.language_model import TokenScores
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.printable import FEWEST, few_code, too_few
from truesource.grammar.support.settings import DEFAULT_SEED

Measure = Callable[[NDArray[Any]], NDArray[Any]]  #: functions of sums (R, K), real or complex, to (R, M)
REPLICATES = 1000
LEVEL = 0.95
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
LARGE = 200  #: least number of sentences for the normal limit
SKEWED = 0.05  #: sum of cubes over (sum of squares)^1.5, of influences; most for the normal limit
FLOOR = 0.3  #: least error of a resample, in errors of all sentences
DRAWN = 2**20  #: maximum number of sentences drawn at once
STEP = 1e-20  #: of derivatives in the complex plane, which lose no digits
Z = float(ndtri(TAILS[1]))


class _Interval(NamedTuple):
    value: float
    low: float | None = None
    high: float | None = None


class Interval(_Interval):
    """A value with its 95% interval, which encloses it; None: there are fewer than `FEWEST` sentences."""

    __slots__ = ()

    def __new__(cls, value: float, low: float | None = None, high: float | None = None) -> Self:
        """Move ends to the value if they exclude it."""
        return super().__new__(cls, value, *enclosing(value, low, high))


class Draws(NamedTuple):
    """K statistics with their standard errors, of the sample and of R resamples."""

    value: FloatArray  #: (K,)
    error: FloatArray  #: (K,) NaN if there are too few sentences
    resampled: FloatArray  #: (R, K) NaN if a resample has no value
    resampled_error: FloatArray  #: (R, K)


def ci_part(
    sentences: int,
    seed: int,
    unit: str = "sentence",
    *,
    method: Literal["t", "percentile", "jackknife", "wilson"] = "t",
    with_seeds: bool = False,
) -> str:
    """Return the part of a signature on intervals of so many sentences, or other units: method and seed, or why none.

    Args:
        sentences: number that count.
        seed: of the resampling.
        unit: the resampled unit.
        method: ``t`` for the studentised bootstrap, ``percentile`` for quantiles of resampled values, as of medians,
            ``jackknife`` for Student's t with the jackknife's error, as of Spearman's rho, where nothing is random;
            ``wilson`` for shares, see `truesource.evaluation.measures.bootstrap`, where nothing is random either.
        with_seeds: whether the interval is over training seeds too, see `truesource.evaluation.measures.contrast`.
    """
    if too_few(sentences):
        return f"none/{few_code(unit)}"
    if method == "wilson":
        return "wilson95"
    if method == "jackknife":
        return f"{unit}-jackknife-t95"
    return f"{unit}-bootstrap-{method}95/seed{seed}{'+seeds-satterthwaite' if with_seeds else ''}"


def ends(low: float, high: float) -> tuple[float, float] | tuple[None, None]:
    """Return the ends of an interval as numbers, or None twice if it has none or an end is beyond all numbers."""
    return (float(low), float(high)) if math.isfinite(low) and math.isfinite(high) else (None, None)


def resampled_ratio(total: FloatArray, count: FloatArray, *, seed: int, replicates: int = REPLICATES) -> FloatArray:
    """Return the interval of ``sum(total) / sum(count)``, sentences drawn with replacement, (2,): `resampled_ratios`.

    Args:
        total: (N,) per sentence.
        count: (N,) scored positions per sentence.
        seed: of the resampling.
        replicates: number of resamples.
    """
    return resampled_ratios(total[:, None], count[:, None], seed=seed, replicates=replicates)[:, 0]


def resampled_ratios(total: FloatArray, count: FloatArray, *, seed: int, replicates: int = REPLICATES) -> FloatArray:
    """Return intervals of ``sum(total) / sum(count)``, column by column, (2, K).

    They are NaN if fewer than `FEWEST` sentences count.

    Args:
        total: (N, K) per sentence and measure; 0 where nothing counts.
        count: (N, K) divisors; 0 where a sentence does not count. No column sums to 0.
        seed: of the resampling.
        replicates: number of resamples.
    """
    intervals = np.full((2, total.shape[1]), np.nan)
    counted = count != 0.0
    enough = counted.sum(axis=0) >= FEWEST
    if not enough.any():
        return intervals
    value, residual, influence = _ratios(total[:, enough], count[:, enough])
    sentences = counted[:, enough].sum(axis=0)
    normal = _is_normal(influence, sentences)
    intervals[:, enough] = _normal_ends(value, influence, sentences)
    rest = np.flatnonzero(enough)[~normal]
    if len(rest):
        rows = counted[:, rest].any(axis=1)
        draws = _ratio_draws(
            value[~normal], residual[np.ix_(rows, ~normal)], count[np.ix_(rows, rest)], seed, replicates
        )
        intervals[:, rest] = studentised(draws)
    return intervals


def ratio_draws(total: FloatArray, count: FloatArray, *, seed: int, replicates: int = REPLICATES) -> Draws:
    """Return ratios as in `resampled_ratios`, with the ratios of resamples, for statistics of several ratios.

    Args:
        total: (N, K) per sentence and measure.
        count: (N, K) divisors; some of each column above 0.
        seed: of the resampling; calls with equal N and seed draw the same sentences.
        replicates: number of resamples.
    """
    value, residual, _ = _ratios(total, count)
    draws = _ratio_draws(value, residual, count, seed, replicates)
    few = (count != 0.0).sum(axis=0) < FEWEST
    return draws._replace(error=np.where(few, np.nan, draws.error))


def resampled_measures(measure: Measure, sums: FloatArray, *, seed: int, replicates: int = REPLICATES) -> FloatArray:
    """Return intervals of smooth functions of sums over sentences, (2, M); NaN for fewer than `FEWEST` sentences.

    Args:
        measure: takes sums (R, K) and gives R values of each function, (R, M). It also takes complex sums, from which
            its derivatives are read. It is treated as linear near the sums of all; transform a measure that is not,
            such as a correlation near 1, to a scale on which it is linear, and transform the ends back.
        sums: (N, K) per sentence.
        seed: of the resampling.
        replicates: number of resamples.
    """
    n = len(sums)
    whole = sums.sum(axis=0)[None]
    value, slope = _linearised(measure, whole)
    if too_few(n):
        return np.full((2, value.shape[1]), np.nan)
    centred = sums - whole / n
    influence = centred @ slope[0]
    sentences = np.full(influence.shape[1], n)
    if _is_normal(influence, sentences).all():
        return _normal_ends(value[0], influence, sentences)
    squares = (centred[:, :, None] * centred[:, None, :]).reshape(n, -1)
    resamples, errors = [], []
    for times in resampled_times(n, seed=seed, replicates=replicates):
        values, slopes = _linearised(measure, times @ sums)
        moments = (times @ squares).reshape(-1, sums.shape[1], sums.shape[1])
        mean = np.einsum("rk,rkm->rm", times @ centred, slopes)
        variance = np.einsum("rkm,rkl,rlm->rm", slopes, moments, slopes) - mean**2 / n
        resamples.append(values)
        errors.append(np.sqrt(np.maximum(variance, 0.0)))
    error = np.sqrt(np.square(influence).sum(axis=0))
    return studentised(Draws(value[0], error, np.concatenate(resamples), np.concatenate(errors)))


def difference(one: Draws, other: Draws) -> Draws:
    """Subtract the statistics of another sample, drawn independently."""
    return Draws(
        one.value - other.value,
        np.hypot(one.error, other.error),
        one.resampled - other.resampled,
        np.hypot(one.resampled_error, other.resampled_error),
    )


def studentised(draws: Draws) -> FloatArray:
    """Return the interval of each statistic from its resamples, (2, K); NaN if it has no error."""
    least = np.maximum(draws.resampled_error, FLOOR * draws.error)
    difference = draws.resampled - draws.value
    pivot = np.divide(difference, least, out=np.where(np.isnan(difference), np.nan, 0.0), where=least > 0.0)
    low, high = _quantiles(pivot)
    low, high = draws.value - high * draws.error, draws.value - low * draws.error
    return np.stack([np.minimum(low, draws.value), np.maximum(high, draws.value)])


def resampled_sums(values: FloatArray, *, seed: int, replicates: int = REPLICATES) -> FloatArray:
    """Return sums of each column over sentences drawn with replacement, (replicates, K).

    Args:
        values: (N, K) per sentence.
        seed: of the resampling.
        replicates: number of resamples.
    """
    return np.concatenate([times @ values for times in resampled_times(len(values), seed=seed, replicates=replicates)])


def resampled_times(n: int, *, seed: int, replicates: int = REPLICATES) -> Iterator[FloatArray]:
    """Yield the number of times that each of ``n`` sentences is in a resample, a few resamples at once, (some, n)."""
    rng = np.random.default_rng(seed)
    step = max(1, min(replicates, DRAWN // n))
    for start in range(0, replicates, step):
        size = min(step, replicates - start)
        picks = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        yield np.bincount(picks.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)


def _ratios(total: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ratios (K,), the residual of each sentence (N, K), and its influence on the ratio (N, K)."""
    below = count.sum(axis=0)
    value = total.sum(axis=0) / below
    residual = total - value * count
    return value, residual, residual / below


def _ratio_draws(value: FloatArray, residual: FloatArray, count: FloatArray, seed: int, replicates: int) -> Draws:
    """Return resampled ratios and their errors, from sums of products alone."""
    columns = np.concatenate([residual, count, residual**2, residual * count, count**2], axis=1)
    resamples, errors = [], []
    for times in resampled_times(len(count), seed=seed, replicates=replicates):
        above, below, squares, products, counts = np.split(times @ columns, 5, axis=1)
        below = np.where(below != 0.0, below, np.nan)
        shift = above / below
        variance = squares - 2.0 * shift * products + shift**2 * counts
        resamples.append(value + shift)
        errors.append(np.sqrt(np.maximum(variance, 0.0)) / np.abs(below))
    error = np.sqrt(np.square(residual).sum(axis=0)) / np.abs(count.sum(axis=0))
    return Draws(value, error, np.concatenate(resamples), np.concatenate(errors))


def _linearised(measure: Measure, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values (R, M) of functions of sums (R, K) and their derivatives (R, K, M), by complex steps."""
    slopes = []
    for k in range(sums.shape[1]):
        moved = sums.astype(np.complex128)
        scale = np.maximum(np.abs(sums[:, k]), 1.0)
        moved[:, k] += 1j * STEP * scale
        slopes.append(measure(moved).imag / (STEP * scale)[:, None])
    return np.asarray(measure(sums)), np.stack(slopes, axis=1)


def _is_normal(influence: FloatArray, sentences: IntArray) -> BoolArray:
    """Return True for each column of influences (N, K) that the normal limit suits, (K,)."""
    spread = np.square(influence).sum(axis=0) ** 1.5
    skew = np.divide(np.abs((influence**3).sum(axis=0)), spread, out=np.zeros(len(spread)), where=spread > 0.0)
    return np.asarray((sentences >= LARGE) & (skew <= SKEWED))


def _normal_ends(value: FloatArray, influence: FloatArray, sentences: IntArray) -> FloatArray:
    """Return ends (2, K) by the normal limit, with Student's t."""
    half = stdtrit(sentences - 1, TAILS[1]) * np.sqrt(np.square(influence).sum(axis=0))
    return np.stack([value - half, value + half])


def _quantiles(pivot: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the order statistics (K,) of rank tail * (R + 1) among the numbers of (R, K)."""
    ordered = np.sort(pivot, axis=0)  # NaN last
    valid = (~np.isnan(ordered)).sum(axis=0)
    rank = np.maximum((TAILS[0] * (valid + 1)).astype(np.int64), 1)
    low, high = (np.take_along_axis(ordered, at[None], axis=0)[0] for at in (rank - 1, np.maximum(valid - rank, 0)))
    return low, high


def proportion(right: FloatArray, counted: FloatArray) -> Interval | None:
    """Return the share of pairs that are right with the 95% interval of Wilson (1927); None if no pair counts.

    Too few sources, see `truesource.grammar.support.printable.too_few`, have no interval.

    Pairs of one source are not independent. So the number of pairs is divided by the design effect (Kish 1965): the
    variance of the share between sources, over the variance of as many independent pairs, at least 1. A share of 0 or 1
    has no variance; the number of sources then replaces the number of pairs, as for a single source.

    Args:
        right: (N,) by source, pairs that are right; a tie counts half.
        counted: (N,) by source, pairs that count.
    """
    pairs = float(counted.sum())
    if pairs == 0.0:
        return None
    share = float(right.sum()) / pairs
    if too_few(counting(counted)):
        return Interval(share)
    return Interval(share, *wilson(share, _effective(right, counted, share)))


def counting(counted: FloatArray) -> int:
    """Return the number of sources (N,) with pairs that count."""
    return int((counted > 0.0).sum())


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return ends of the 95% interval of a share of ``n`` independent trials; ``n`` need not be whole."""
    z2 = Z * Z / n
    middle = (share + z2 / 2.0) / (1.0 + z2)
    half = math.sqrt(z2 * (share * (1.0 - share) + z2 / 4.0)) / (1.0 + z2)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def _effective(right: FloatArray, counted: FloatArray, share: float) -> float:
    """Return the number of independent pairs that would have the observed variance."""
    pairs, sources = float(counted.sum()), counting(counted)
    alone = share * (1.0 - share)
    if alone <= 0.0:
        return float(sources)
    residual = right - share * counted
    variance = sources / (sources - 1) * float(residual @ residual) / pairs**2
    return pairs / max(1.0, variance * (pairs - 1.0) / alone)


def perplexity(log_prob: FloatArray) -> float:
    """Return ``exp(-mean ln q)`` over all scored positions, pooled (never a mean of per-sentence perplexities).

    Of masked scores this is the pseudo-perplexity (Salazar et al. 2020).
    """
    return float(np.exp(-np.mean(log_prob)))


def perplexity_interval(scores: TokenScores, seed: int = DEFAULT_SEED) -> Interval:
    """Return the perplexity of all scored positions, at least one; sentences are resampled.

    Args:
        scores: of one model.
        seed: of the resampling.
    """
    _, row = np.unique(scores.sentence, return_inverse=True)
    total, counts = (np.bincount(row, weights).astype(np.float64) for weights in (-scores.log_prob, None))
    log_ends = resampled_ratio(total, counts, seed=seed)
    with np.errstate(over="ignore"):
        return Interval(perplexity(scores.log_prob), *ends(*np.exp(np.maximum(log_ends, 0.0))))


def perplexities(paired: Paired, seed: int = DEFAULT_SEED) -> dict[str, Interval]:
    """Return ``ppl`` of the model, ``bound`` of the oracle, their ratio ``relative_ppl``, and ``kl``, with intervals.

    ``kl = ln relative_ppl = mean(ln P - ln Q)`` is an unbiased estimate of the divergence KL(P || Q) in nats per
    token. Sentences are resampled, model and oracle together.
    """
    model, oracle, counts = paired.sums()
    totals = np.stack([-model, -oracle, oracle - model], axis=1)
    log_ends = resampled_ratios(totals, np.repeat(counts[:, None], 3, axis=1), seed=seed)
    log_ends[:, :2] = np.maximum(log_ends[:, :2], 0.0)  # surprisals
    kl = float(np.mean(paired.oracle - paired.model))
    values = perplexity(paired.model), perplexity(paired.oracle), float(np.exp(kl))
    with np.errstate(over="ignore"):
        intervals = [Interval(value, *ends(*at)) for value, at in zip(values, np.exp(log_ends).T, strict=True)]
    return {
        **dict(zip(("ppl", "bound", "relative_ppl"), intervals, strict=True)),
        "kl": Interval(kl, *ends(*log_ends[:, 2])),
    }
