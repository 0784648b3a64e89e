"""Tests for discrete properties of sentences (length, share of some words), and for word frequencies.

Sentences are independent, so the null distribution is known and sampled, not approximated: multinomial for a sample
against a known distribution, multivariate hypergeometric for two samples with permuted sentences. Neither
Kolmogorov's distribution, which holds for continuous values, nor a test of single tokens, which are not independent,
has its nominal size (`scipy.stats.ks_1samp` rejects every discrete sample that is large enough).

For word frequencies, sentences are permuted and words counted again. Permuting tokens, as if the words of a sentence
were independent, rejects true null hypotheses wherever words recur within sentences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from truesource.evaluation.measures import DRAWS, PERMUTATIONS
from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.evaluation.measures.monte_carlo import ChanceTest, judged
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import few_code, meter, too_few
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.support.threads import threads

AT_ONCE = 2**22  #: most numbers held for draws
RANKS = 10_000  #: most frequent words that rank-frequency distributions are taken over, by default
STATISTICS = ("tv", "linf", "rank_ks")
_BATCH = 16  #: permutations a task


def distances(of: FloatArray, others: FloatArray) -> dict[str, FloatArray]:
    """Return all distances between distributions, row by row.

    ``ks`` is the largest difference of the distribution functions (Kolmogorov-Smirnov), for atoms in ascending order;
    ``tv`` half the sum of absolute differences, the largest difference over all events; ``linf`` the largest over
    single atoms, which Meister & Cotterell (2021, equation 11) call the total variation distance.

    Args:
        of: (..., K) probabilities of the atoms, the same in every row.
        others: (..., K) or (K,).

    Returns:
        (...) each, in [0, 1].
    """
    gap = of - others
    size = np.abs(gap)
    return {
        "ks": np.abs(np.cumsum(gap, axis=-1)).max(axis=-1),
        "tv": 0.5 * size.sum(axis=-1),
        "linf": size.max(axis=-1),
    }


@dataclass(frozen=True)
class MeanDifference:
    """Difference of the means of a value between two samples, or a sample and a known distribution."""

    difference: float  #: first minus second
    low: float | None  #: of the 95% interval: Welch's for two samples; None: there are too few sentences
    high: float | None
    effect: float  #: the difference over the pooled standard deviation (Cohen's d); 0 where nothing varies
    test: ChanceTest  #: of the difference, two-sided
    ci: str  #: part of a signature on the interval


def against_exact(
    counts: IntArray, probability: FloatArray, *, draws: int = DRAWS, seed: int = DEFAULT_SEED
) -> Mapping[str, ChanceTest]:
    """Test a sample against a known distribution: ``ks``, ``tv``, ``linf``, and ``chi_square`` if it is finite.

    Args:
        counts: (K,) sentences with each value, values ascending.
        probability: (K,) of each value; sums to 1.
        draws: of the multinomial null distribution.
        seed: of the draws.

    Raises:
        InputError: the two do not fit, or there are no sentences.
    """
    total = _checked(counts, probability)
    if abs(float(probability.sum()) - 1.0) > 1e-6:
        raise InputError(f"the probabilities of the known distribution sum to {probability.sum():g}, not 1")
    expected = probability / probability.sum()
    possible = expected > 0.0
    mean = total * expected[possible]

    def statistics(drawn: IntArray) -> dict[str, FloatArray]:
        values: dict[str, FloatArray] = {**distances(drawn / total, expected)}
        values["chi_square"] = ((drawn[..., possible] - mean) ** 2 / mean).sum(axis=-1)
        return values

    rng = np.random.default_rng(seed)
    null = _gathered([statistics(rng.multinomial(total, expected, size=k)) for k in _parts(draws, len(counts))])
    value = {name: float(values) for name, values in statistics(counts).items()}
    if counts[~possible].any():
        del value["chi_square"]  # it is infinite: an impossible value was observed
    return {name: judged(values, null[name]) for name, values in value.items()}


def between(
    counts: IntArray, others: IntArray, *, draws: int = DRAWS, seed: int = DEFAULT_SEED
) -> Mapping[str, ChanceTest]:
    """Test the distances between two samples: ``ks``, ``tv``, ``linf``, ``chi_square`` (homogeneity).

    Args:
        counts: (K,) sentences with each value, values ascending.
        others: (K,) of the other sample.
        draws: of the hypergeometric null distribution: sentences dealt out anew.
        seed: of the draws.

    Raises:
        InputError: the two do not fit, or one has no sentences.
    """
    total, rest = _checked(counts, others), _checked(others, counts)
    pooled = counts + others
    seen = pooled > 0
    mean = pooled[seen] * (total / (total + rest))
    weight = mean * (rest / (total + rest))

    def statistics(drawn: IntArray) -> dict[str, FloatArray]:
        values: dict[str, FloatArray] = {**distances(drawn / total, (pooled - drawn) / rest)}
        values["chi_square"] = ((drawn[..., seen] - mean) ** 2 / weight).sum(axis=-1)
        return values

    rng = np.random.default_rng(seed)
    null = _gathered([statistics(_dealt(rng, pooled, total, k)) for k in _parts(draws, len(counts))])
    return {name: judged(float(values), null[name]) for name, values in statistics(counts).items()}


def cramers_v(chi_square: float, n: int, values: int) -> float:
    """Return the effect size of a chi-square of homogeneity of two samples, in [0, 1]: ``sqrt(chi_square / n)``.

    Args:
        chi_square: of the 2 x ``values`` table.
        n: sentences of both.
        values: number of observed values; V of a single value is 0.
    """
    return math.sqrt(chi_square / n) if values > 1 else 0.0


def mean_difference(
    values: FloatArray, counts: IntArray, others: IntArray, *, draws: int = DRAWS, seed: int = DEFAULT_SEED
) -> MeanDifference:
    """Return the difference of the means of two samples, with Welch's interval; the test permutes sentences.

    The null hypothesis of the test is that the two have one distribution, not only one mean.

    Args:
        values: (K,) ascending.
        counts: (K,) sentences with each.
        others: (K,) of the other sample.
        draws: of the null distribution.
        seed: of the draws.

    Raises:
        InputError: the two do not fit, or one has fewer than 2 sentences.
    """
    from scipy import stats

    total, rest = _checked(counts, others), _checked(others, counts)
    if min(total, rest) < 2:
        raise NothingToMeasureError(
            f"an interval of a mean needs 2 sentences or more on both sides, got {total} and {rest}",
            "too-few-sentences",
        )
    (m1, v1), (m2, v2) = (_moments(values, c) for c in (counts, others))
    difference = m1 - m2
    e1, e2 = v1 / total, v2 / rest
    spread = math.sqrt(e1 + e2)
    freedom = (e1 + e2) ** 2 / (e1**2 / (total - 1) + e2**2 / (rest - 1)) if spread else math.inf
    half = float(stats.t.ppf(0.975, freedom)) * spread if spread else 0.0
    pooled = counts + others
    rng = np.random.default_rng(seed)
    whole = float(values @ pooled)
    sums = np.concatenate([_dealt(rng, pooled, total, k) @ values for k in _parts(draws, len(counts))])
    null = sums / total - (whole - sums) / rest
    low, high = _ends(difference, half, min(total, rest))
    return MeanDifference(
        difference,
        low,
        high,
        _effect(difference, (total - 1) * v1 + (rest - 1) * v2, total + rest - 2),
        judged(difference, null, "both", centre=0.0),
        _ci("welch-t95", min(total, rest)),
    )


def mean_against_exact(
    values: FloatArray, counts: IntArray, probability: FloatArray, *, draws: int = DRAWS, seed: int = DEFAULT_SEED
) -> MeanDifference:
    """Return the difference of a sample's mean from the mean of a known distribution, with a t interval.

    Args:
        values: (K,) ascending.
        counts: (K,) sentences with each.
        probability: (K,) of each value; sums to 1.
        draws: of the multinomial null distribution.
        seed: of the draws.

    Raises:
        InputError: the two do not fit, or there are fewer than 2 sentences.
    """
    from scipy import stats

    total = _checked(counts, probability)
    if total < 2:
        raise NothingToMeasureError("an interval of a mean needs 2 sentences or more, got 1", "too-few-sentences")
    expected = probability / probability.sum()
    mean, variance = _moments(values, counts)
    truth = float(values @ expected)
    half = float(stats.t.ppf(0.975, total - 1)) * math.sqrt(variance / total)
    rng = np.random.default_rng(seed)
    null = np.concatenate([rng.multinomial(total, expected, size=k) @ values for k in _parts(draws, len(counts))])
    difference = mean - truth
    spread = float((values - truth) ** 2 @ expected)
    low, high = _ends(difference, half, total)
    return MeanDifference(
        difference,
        low,
        high,
        _effect(difference, spread, 1),
        judged(difference, null / total - truth, "both", centre=0.0),
        _ci("t95", total),
    )


def _ends(value: float, half: float, sentences: int) -> tuple[float, float] | tuple[None, None]:
    return (None, None) if too_few(sentences) else (value - half, value + half)


def _ci(method: str, sentences: int) -> str:
    return f"none/{few_code()}" if too_few(sentences) else method


def atoms(*samples: FloatArray) -> tuple[FloatArray, list[IntArray]]:
    """Return the different values of some samples, ascending, and how often each sample has each."""
    values, code = np.unique(np.concatenate(samples), return_inverse=True)
    ends = np.cumsum([len(sample) for sample in samples])[:-1]
    return values, [np.bincount(part, minlength=len(values)) for part in np.split(code, ends)]


def _dealt(rng: np.random.Generator, pooled: IntArray, total: int, draws: int) -> IntArray:
    """Return counts of the first sample for permuted sentences of both, (draws, K)."""
    return rng.multivariate_hypergeometric(pooled, total, size=draws, method="marginals")


def _parts(draws: int, width: int) -> list[int]:
    """Return the sizes of the parts in which draws are made."""
    step = max(1, AT_ONCE // max(1, width))
    return [min(step, draws - start) for start in range(0, draws, step)]


def _gathered(parts: list[dict[str, FloatArray]]) -> dict[str, FloatArray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _moments(values: FloatArray, counts: IntArray) -> tuple[float, float]:
    """Return the mean and unbiased variance."""
    n = int(counts.sum())
    mean = float(values @ counts) / n
    return mean, float((values - mean) ** 2 @ counts) / (n - 1)


def _effect(difference: float, squares: float, freedom: int) -> float:
    return difference / math.sqrt(squares / freedom) if squares > 0.0 else 0.0


def _checked(counts: IntArray, other: IntArray | FloatArray) -> int:
    """Return the number of sentences counted."""
    total = int(counts.sum())
    if not total or len(counts) != len(other):
        raise InputError(
            f"{len(counts)} and {len(other)} values are compared over {total} sentences; give both over the same"
            " values, and at least one sentence"
        )
    return total


def compare_words(of: Encoded, others: Encoded, *, ranks: int = RANKS) -> dict[str, float]:
    """Return distances between the word frequencies of two samples.

    ``tv`` and ``linf`` as `evaluation.measures.discrete_tests`; ``rank_ks`` the Kolmogorov-Smirnov distance of their
    rank-frequency distributions, each ranked by its own counts (Meister & Cotterell 2021, section 5).

    Raises:
        InputError: the samples were not encoded together.
    """
    from truesource.evaluation.measures._kernels import permutation as kernels

    _together(of, others)
    distance = np.empty(3)
    kernels.compare(of.counts(), others.counts(), ranks, distance)
    return dict(zip(STATISTICS, map(float, distance), strict=True))


def permuted_words(
    of: Encoded, others: Encoded, *, ranks: int = RANKS, draws: int = PERMUTATIONS, seed: int = DEFAULT_SEED
) -> dict[str, FloatArray]:
    """Return the distances of `compare_words` for random splits of all sentences into these sizes, (draws,) each.

    Every permutation has its own generator, so that the numbers do not depend on the number of cores.

    Raises:
        InputError: the samples were not encoded together.
    """
    from truesource.evaluation.measures._kernels import permutation as kernels

    _together(of, others)
    tokens = np.concatenate([of.tokens, others.tokens]).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([of.lengths, others.lengths]))]).astype(np.int64)
    pooled = of.counts() + others.counts()
    states = np.random.default_rng(seed).integers(0, 2**64, size=(draws, 4), dtype=np.uint64)
    null = np.empty((draws, len(STATISTICS)))
    parts = [slice(a, min(a + _BATCH, draws)) for a in range(0, draws, _BATCH)]
    run = delayed(kernels.permutations)
    with meter("permuting sentences", total=draws) as progress:
        parallel = Parallel(n_jobs=threads(), prefer="threads", return_as="generator")
        work = (run(tokens, offsets, pooled, len(of), states[part], ranks, null[part]) for part in parts)
        for part, _ in zip(parts, parallel(work), strict=True):
            progress.advance(part.stop - part.start)
    return dict(zip(STATISTICS, null.T, strict=True))


def _together(of: Encoded, others: Encoded) -> None:
    if of.vocabulary != others.vocabulary:
        raise InputError("the two samples have different codes for words; encode them together")
