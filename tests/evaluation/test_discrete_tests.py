"""Distances and tests of values that sentences have, against closed forms, scipy, and their own size."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from truesource.evaluation.measures.discrete_tests import (
    against_exact,
    atoms,
    between,
    cramers_v,
    distances,
    mean_against_exact,
    mean_difference,
)
from truesource.evaluation.measures.monte_carlo import holm, judged, p_value
from truesource.grammar.support.errors import InputError

SAMPLES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=8)


def test_distances_by_hand() -> None:
    found = distances(np.array([0.5, 0.2, 0.3]), np.array([0.2, 0.4, 0.4]))
    assert found["ks"] == pytest.approx(0.3)
    assert found["tv"] == pytest.approx(0.3)
    assert found["linf"] == pytest.approx(0.3)
    found = distances(np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]), np.array([0.0, 1.0, 0.0]))
    assert found["ks"].tolist() == [0.5, 0.0]
    assert found["tv"].tolist() == [1.0, 0.0]
    assert found["linf"].tolist() == [1.0, 0.0]


def test_ten_tosses_of_a_coin() -> None:
    """6 heads of 10: total variation .1, chi-square .4, and |X - 5| >= 1 has probability 1 - C(10,5)/1024."""
    found = against_exact(np.array([6, 4]), np.array([0.5, 0.5]))
    assert found["tv"].value == pytest.approx(0.1)
    assert found["chi_square"].value == pytest.approx(0.4)
    assert found["tv"].p == pytest.approx(1 - 252 / 1024, abs=0.02)
    assert found["chi_square"].p == found["tv"].p == found["ks"].p
    null = sum(math.comb(10, k) * abs(k - 5) / 10 for k in range(11)) / 1024
    assert found["tv"].null_mean == pytest.approx(null, abs=0.005)


def test_a_value_that_cannot_be_has_no_chi_square() -> None:
    found = against_exact(np.array([1, 6, 4]), np.array([0.0, 0.5, 0.5]))
    assert "chi_square" not in found
    assert found["tv"].value == pytest.approx(0.5 * (1 / 11 + abs(6 / 11 - 0.5) + abs(4 / 11 - 0.5)))


@pytest.mark.long
@given(SAMPLES)
def test_two_samples_by_scipy(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs).T
    seen = a + b > 0
    assume(a.sum() > 0 and b.sum() > 0 and seen.sum() > 1)
    found = between(a, b, draws=50)
    wanted = stats.chi2_contingency(np.array([a[seen], b[seen]]), correction=False)
    assert found["chi_square"].value == pytest.approx(wanted.statistic, rel=1e-9, abs=1e-9)
    assert found["tv"].value == pytest.approx(sum(abs(x / a.sum() - y / b.sum()) for x, y in pairs) / 2)
    each = [np.repeat(np.arange(len(c)), c) for c in (a, b)]
    assert found["ks"].value == pytest.approx(stats.ks_2samp(*each).statistic)
    v = cramers_v(found["chi_square"].value, int(a.sum() + b.sum()), int(seen.sum()))
    assert v == pytest.approx(stats.contingency.association(np.array([a[seen], b[seen]]), method="cramer"))
    assert between(a, a, draws=50)["tv"].value == 0.0
    assert between(a, a, draws=50)["tv"].p == 1.0


@pytest.mark.long
@given(SAMPLES, st.integers(0, 5))
def test_the_interval_of_two_means_is_welchs(pairs: list[tuple[int, int]], shift: int) -> None:
    a, b = 5 * np.array(pairs).T
    assume(a.sum() >= 10 and b.sum() >= 10)
    values = np.arange(len(a)) * 1.5 - shift
    first, second = (np.repeat(values, c) for c in (a, b))
    assume(first.std() > 0 and second.std() > 0)
    found = mean_difference(values, a, b, draws=20)
    wanted = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert found.difference == pytest.approx(first.mean() - second.mean(), abs=1e-12)
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=1e-9)
    n, m = len(first), len(second)
    pooled = math.sqrt(((n - 1) * first.var(ddof=1) + (m - 1) * second.var(ddof=1)) / (n + m - 2))
    assert found.effect == pytest.approx(found.difference / pooled, abs=1e-12)


def test_the_p_value_of_two_means_is_that_of_scipys_permutations() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.binomial(6, 0.5, 30), rng.binomial(6, 0.62, 40)
    values, (first, second) = atoms(a.astype(float), b.astype(float))
    found = mean_difference(values, first, second)
    wanted = stats.permutation_test(
        (a, b),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        n_resamples=9999,
        vectorized=True,
        rng=np.random.default_rng(1),
    )
    assert found.test.p == pytest.approx(float(wanted.pvalue), abs=0.015)


def test_a_mean_against_a_known_one() -> None:
    """20 dice: the interval is a t interval, the test knows that the variance is 35/12."""
    rolls = np.random.default_rng(5).integers(1, 7, 20)
    counts = np.bincount(rolls, minlength=7)[1:]
    found = mean_against_exact(np.arange(1, 7.0), counts, np.full(6, 1 / 6))
    low, high = stats.ttest_1samp(rolls, 3.5).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low - 3.5, high - 3.5))
    assert found.effect == pytest.approx((rolls.mean() - 3.5) / math.sqrt(35 / 12))
    normal = 2 * stats.norm.sf(abs(rolls.mean() - 3.5) / math.sqrt(35 / 12 / 20))
    assert found.test.p == pytest.approx(normal, abs=0.03)


def test_atoms_are_shared() -> None:
    values, counts = atoms(np.array([0.5, 0.0, 0.5]), np.array([1.0, 0.5]))
    assert values.tolist() == [0.0, 0.5, 1.0]
    assert [c.tolist() for c in counts] == [[1, 2, 0], [0, 1, 1]]


def test_means_where_nothing_varies() -> None:
    found = mean_difference(np.array([2.0]), np.array([30]), np.array([40]), draws=10)
    assert (found.difference, found.low, found.high, found.effect, found.test.p) == (0.0, 0.0, 0.0, 0.0, 1.0)


# -- p-values ---------------------------------------------------------------------------------------


def test_p_values_count_the_statistic() -> None:
    null = np.array([0.1, 0.2, 0.3, 0.4])
    assert p_value(0.35, null) == 2 / 5
    assert p_value(0.3, null) == 3 / 5
    assert p_value(9.0, null) == 1 / 5
    assert p_value(-0.3, np.array([-0.4, 0.1, 0.2]), "both", centre=0.0) == 2 / 4
    assert judged(0.35, null).null_mean == pytest.approx(0.25)


def test_the_printed_algorithm_calls_a_far_negative_statistic_certain() -> None:
    """Algorithm 1 of Meister & Cotterell (2021): p = 1 for any sufficiently negative statistic."""
    null = np.random.default_rng(0).normal(size=2500)
    assert p_value(-5.0, null, "paper", centre=0.0) == 1.0
    assert p_value(-5.0, null, "both", centre=0.0) == 1 / 2501
    assert p_value(2.0, null, "paper", centre=0.0) == pytest.approx(0.0455, abs=0.01)


def test_two_sided_p_values_are_valid_at_every_level() -> None:
    """All R + 1 values are exchangeable, so the p-values are uniform on 1/(R+1), ..., 1, at most one tie each."""
    rng = np.random.default_rng(1)
    draws = rng.gamma(2.0, size=(20_000, 20))
    found = np.array([p_value(float(row[0]), row[1:], "both") for row in draws])
    for level in (0.05, 0.1, 0.25, 0.5):
        share = np.mean(found <= level)
        assert share <= level + 4 * math.sqrt(level / 20_000)
        assert share >= level - 0.05 - 4 * math.sqrt(level / 20_000)


def test_holm_by_hand() -> None:
    """.01, .04, .03: 3 x .01, then 2 x .03, and .04 cannot fall below that."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


# -- size -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_tests_have_the_size_they_say() -> None:
    rng = np.random.default_rng(4)
    pmf = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    one = [against_exact(rng.multinomial(60, pmf), pmf, draws=199, seed=i) for i in range(400)]
    two = [between(rng.multinomial(60, pmf), rng.multinomial(90, pmf), draws=199, seed=i) for i in range(400)]
    for found in (one, two):
        for name in ("ks", "tv", "linf", "chi_square"):
            rejected = sum(f[name].p <= 0.05 for f in found)
            low, high = stats.binom.interval(0.999, len(found), 0.05)
            assert rejected <= high
            assert rejected >= low - 6  # ties make a discrete test a little careful


def test_scipys_continuous_test_rejects_every_discrete_sample() -> None:
    """Why the null is drawn: `ks_1samp` calls 4,000 draws from this very distribution another one."""
    pmf = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    sample = np.random.default_rng(2).choice(5, 4000, p=pmf)
    cdf = np.cumsum(pmf)
    wrong = stats.ks_1samp(sample, lambda x: cdf[np.clip(x.astype(int), 0, 4)])
    ours = against_exact(np.bincount(sample, minlength=5), pmf)["ks"]
    assert wrong.pvalue < 1e-10
    assert wrong.statistic > 10 * ours.value
    assert ours.p > 0.05


# -- bad input --------------------------------------------------------------------------------------


def test_what_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="at least one sentence"):
        between(np.array([0, 0]), np.array([1, 2]))
    with pytest.raises(InputError, match="same values"):
        against_exact(np.array([1, 2]), np.array([1.0]))
    with pytest.raises(InputError, match=r"sum to 0\.5"):
        against_exact(np.array([1, 2]), np.array([0.25, 0.25]))
    with pytest.raises(InputError, match="2 sentences or more"):
        mean_difference(np.array([0.0, 1.0]), np.array([1, 0]), np.array([1, 2]))


@pytest.mark.parametrize(("sentences", "few"), [(9, True), (10, False)])
def test_means_of_few_sentences_have_no_interval(sentences: int, few: bool) -> None:
    """On either side."""
    counts, others = np.array([4, sentences - 4]), np.array([20, 20])
    two = mean_difference(np.array([1.0, 2.0]), counts, others, draws=50)
    swapped = mean_difference(np.array([1.0, 2.0]), others, counts, draws=50)
    exact = mean_against_exact(np.array([1.0, 2.0]), counts, np.array([0.5, 0.5]), draws=50)
    none = "none/fewer-than-10-sentences"
    assert [found.ci for found in (two, swapped, exact)] == ([none] * 3 if few else ["welch-t95", "welch-t95", "t95"])
    for found in (two, swapped, exact):
        assert (found.low is None, found.high is None) == (few, few)
        assert 0.0 < found.test.p <= 1.0
