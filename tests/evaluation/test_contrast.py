"""Means over seeds and their differences: against tests of textbooks, an analysis of variance, and themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from truesource.evaluation.measures.bootstrap import resampled_ratio
from truesource.evaluation.measures.contrast import SeedSums, difference, mean_over_seeds, seed_part
from truesource.grammar.support.printable import FEWEST


def drawn(seed: int, k: int, n: int, *, seeds: float = 0.3, skew: bool = False) -> SeedSums:
    """Totals with parts of sentences, of seeds, and of both."""
    rng = np.random.default_rng([seed, k, n])
    count = rng.integers(1, 9, n).astype(float)
    sentence = rng.lognormal(0.0, 1.0, n) if skew else rng.normal(1.0, 1.0, n)
    gap = sentence + seeds * rng.normal(size=(k, 1)) + 0.3 * rng.normal(size=(k, n))
    return SeedSums(gap * count, np.tile(count, (k, 1)))


def constant(values: list[float], n: int = 12) -> SeedSums:
    """Seeds that have one value in every sentence: nothing but the seeds varies."""
    count = np.arange(1.0, n + 1)
    return SeedSums(np.outer(values, count), np.tile(count, (len(values), 1)))


# -- known cases ------------------------------------------------------------------------------------


def test_where_only_seeds_vary_a_mean_has_the_interval_of_student() -> None:
    values = [0.31, 0.42, 0.35, 0.39]
    found = mean_over_seeds(constant(values))
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert found.value == pytest.approx(np.mean(values), abs=1e-14)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize("other", [[0.40, 0.44, 0.47], [0.2, 0.9], [0.4, 0.41, 0.42, 0.43, 0.44]])
def test_where_only_seeds_vary_a_difference_is_the_test_of_welch(other: list[float]) -> None:
    values = [0.31, 0.42, 0.35, 0.39]
    found = difference(constant(values), constant(other))
    welch = stats.ttest_ind(values, other, equal_var=False)
    assert found.value == pytest.approx(np.mean(values) - np.mean(other), abs=1e-14)
    assert found.p == pytest.approx(welch.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(welch.confidence_interval()), abs=1e-12)


def test_with_many_sentences_of_one_seed_a_difference_is_the_paired_test_of_student() -> None:
    rng = np.random.default_rng(1)
    first, second, ones = rng.normal(0.3, 1.0, 400), rng.normal(0.2, 1.0, 400), np.ones((1, 400))
    found = difference(SeedSums(first[None], ones), SeedSums(second[None], ones))
    paired = stats.ttest_rel(first, second)
    assert found.p == pytest.approx(paired.pvalue, rel=0.01)  # errors here divide by n, not n - 1
    assert (found.low, found.high) == pytest.approx(tuple(paired.confidence_interval()), abs=1e-3)


@pytest.mark.parametrize("skew", [False, True])
@pytest.mark.parametrize("n", [20, 300])
def test_of_one_seed_the_interval_is_that_of_one_ratio_of_sums(n: int, skew: bool) -> None:
    model, baseline = drawn(1, 1, n, skew=skew), drawn(2, 1, n)
    baseline = SeedSums(baseline.total, model.count)
    found = difference(model, baseline, seed=5)
    low, high = resampled_ratio((model.total - baseline.total)[0], model.count[0], seed=5)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    alone = mean_over_seeds(model, seed=5)
    assert (alone.low, alone.high) == pytest.approx(tuple(resampled_ratio(model.total[0], model.count[0], seed=5)))


def test_copies_of_one_seed_change_nothing() -> None:
    model, baseline = drawn(1, 1, 300), drawn(2, 1, 300)
    thrice = SeedSums(np.tile(model.total, (3, 1)), np.tile(model.count, (3, 1)))
    once, again = difference(model, baseline), difference(thrice, baseline)
    assert again.value == pytest.approx(once.value, abs=1e-12)
    assert (again.low, again.high, again.p) == pytest.approx((once.low, once.high, once.p), rel=1e-9)


def test_the_part_of_the_seeds_is_that_of_an_analysis_of_variance() -> None:
    """Sentences of one token: a table of seeds and sentences, both random, one value a cell."""
    k, n = 5, 40
    rng = np.random.default_rng(3)
    table = rng.normal(size=(1, n)) + 0.5 * rng.normal(size=(k, 1)) + rng.normal(size=(k, n))
    means = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    residual = table - means[0] - means[1] + table.mean()
    of_seeds = n * float(((means[0] - table.mean()) ** 2).sum()) / (k - 1)  # mean squares
    of_both = float((residual**2).sum()) / (k - 1) / (n - 1)
    found = seed_part(SeedSums(table, np.ones((k, n))))
    assert found is not None
    assert found.whole == pytest.approx(of_seeds / n / k, rel=1e-12)
    assert found.variance == pytest.approx((of_seeds - of_both * (n - 1) / n) / n / k, rel=1e-12)
    assert found.degrees == k - 1
    assert seed_part(SeedSums(table[:1], np.ones((1, n)))) is None


def test_seeds_that_differ_by_chance_alone_add_nothing() -> None:
    """All variance between these seeds is that of their sentences."""
    rng = np.random.default_rng(4)
    table = rng.normal(size=(2, 50))
    table -= table.mean(axis=1, keepdims=True)
    found = seed_part(SeedSums(table, np.ones((2, 50))))
    assert found is not None
    assert found.variance == 0.0


def test_the_same_model_differs_by_nothing() -> None:
    model = drawn(1, 1, 30)
    found = difference(model, model)
    assert (found.value, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_a_difference_that_no_sentence_varies_is_certain() -> None:
    found = difference(constant([0.4]), constant([0.3]))
    assert (found.low, found.high) == pytest.approx((0.1, 0.1), abs=1e-12)
    assert found.p == pytest.approx(0.0, abs=1e-12)


def test_few_sentences_have_no_interval_and_no_test() -> None:
    found = difference(drawn(1, 3, FEWEST - 1), drawn(2, 3, FEWEST - 1))
    assert (found.low, found.high, found.p) == (None, None, None)
    assert math.isfinite(found.value)


def test_models_of_other_positions_are_linearised() -> None:
    """Unequal counts: the error is that of the difference of two ratios, by the delta method."""
    rng = np.random.default_rng(6)
    first, second = (rng.integers(1, 9, (1, 400)).astype(float) for _ in range(2))
    totals = rng.normal(0.5, 0.3, (1, 400)) * first, rng.normal(0.4, 0.3, (1, 400)) * second
    found = difference(SeedSums(totals[0], first), SeedSums(totals[1], second))
    ratios = [t.sum() / c.sum() for t, c in zip(totals, (first, second), strict=True)]
    residual = (totals[0] - ratios[0] * first) / first.sum() - (totals[1] - ratios[1] * second) / second.sum()
    half = stats.t.ppf(0.975, 399) * math.sqrt(float((residual**2).sum()))
    assert found.value == pytest.approx(ratios[0] - ratios[1], abs=1e-12)
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half), abs=1e-12)


# -- invariances ------------------------------------------------------------------------------------

shapes = st.tuples(st.integers(0, 50), st.integers(1, 4), st.integers(1, 4), st.integers(FEWEST, 60), st.booleans())


@pytest.mark.long
@given(shapes)
def test_swapped_models_have_the_negative_difference(shape: tuple[int, int, int, int, bool]) -> None:
    number, k, other, n, skew = shape
    model, baseline = drawn(number, k, n, skew=skew), drawn(number + 1, other, n)
    found, swapped = difference(model, baseline), difference(baseline, model)
    assert found.low is not None and found.high is not None
    assert (swapped.value, swapped.low, swapped.high, swapped.p) == pytest.approx(
        (-found.value, -found.high, -found.low, found.p), abs=1e-12
    )


@given(shapes)
def test_a_test_rejects_where_the_interval_leaves_out_zero(shape: tuple[int, int, int, int, bool]) -> None:
    number, k, other, n, skew = shape
    found = difference(drawn(number, k, n, skew=skew), drawn(number + 1, other, n, skew=not skew))
    assert found.p is not None and found.low is not None and found.high is not None
    assert 0.0 <= found.p <= 1.0
    assert (found.p < 0.05) == (found.low > 0.0 or found.high < 0.0)
    assert found.low <= found.value <= found.high


@given(st.integers(0, 50), st.integers(1, 4))
def test_the_order_of_sentences_and_of_seeds_does_not_matter(number: int, k: int) -> None:
    model, baseline = drawn(number, k, 300), drawn(number + 1, 3, 300)
    rng = np.random.default_rng(number)
    sentences, seeds = rng.permutation(300), rng.permutation(k)
    found = difference(model, baseline)
    again = difference(
        SeedSums(model.total[seeds][:, sentences], model.count[seeds][:, sentences]),
        SeedSums(baseline.total[:, sentences], baseline.count[:, sentences]),
    )
    assert (again.value, again.low, again.high, again.p) == pytest.approx(
        (found.value, found.low, found.high, found.p), abs=1e-10
    )


@given(shapes, st.floats(0.1, 10.0))
def test_units_do_not_matter(shape: tuple[int, int, int, int, bool], unit: float) -> None:
    number, k, other, n, skew = shape
    sides = [drawn(number, k, n, skew=skew), drawn(number + 1, other, n)]
    found = difference(*sides)
    again = difference(*(SeedSums(unit * side.total, side.count) for side in sides))
    assert found.low is not None and found.high is not None
    assert (again.value, again.low, again.high) == pytest.approx(
        (unit * found.value, unit * found.low, unit * found.high), rel=1e-9, abs=1e-9
    )
    assert again.p == pytest.approx(found.p, rel=1e-6)
