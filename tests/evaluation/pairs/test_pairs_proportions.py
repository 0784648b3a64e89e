"""Intervals of accuracies: how often they hold, and what pairs of one sentence do to them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from truesource.evaluation.measures.proportions import proportion, wilson
from truesource.evaluation.pairs.sums import FEWEST, by_source, measures, pair_sums


@pytest.mark.parametrize(("right", "n"), [(0, 5), (3, 7), (20, 20), (97, 100)])
def test_independent_pairs_have_the_interval_of_wilson(right: int, n: int) -> None:
    values = (np.arange(n) < right).astype(np.float64)
    found = proportion(values, np.ones(n))
    known = binomtest(right, n).proportion_ci(method="wilson")
    assert found == pytest.approx((right / n, known.low, known.high), abs=1e-12)


@pytest.mark.parametrize(("n", "p"), [(20, 0.9), (20, 0.97), (50, 0.97), (100, 0.99), (100, 0.83)])
def test_intervals_hold_where_shares_are_near_one(n: int, p: float) -> None:
    """A percentile bootstrap of 20 pairs holds in 45% of the cases at 0.97."""
    ends = np.array([wilson(k / n, n) for k in range(n + 1)])
    holds = (ends[:, 0] <= p) & (p <= ends[:, 1])
    assert binom.pmf(np.arange(n + 1), n, p)[holds].sum() > 0.92


def test_pairs_of_one_sentence_are_not_independent() -> None:
    alike = proportion(np.array([4.0, 4.0, 4.0, 0.0, 0.0]), np.full(5, 4.0))
    apart = proportion(np.repeat([1.0, 0.0], [12, 8]), np.ones(20))
    assert alike is not None
    assert apart is not None
    assert alike.value == apart.value == 0.6
    variance = 5 / 4 * (3 * 1.6**2 + 2 * 2.4**2) / 20**2  # residuals 4 - 0.6 * 4 and 0 - 0.6 * 4
    effect = variance / (0.24 / 19)
    assert effect == pytest.approx(4.75)
    assert alike[1:] == pytest.approx(wilson(0.6, 20 / effect))
    assert alike.low < apart.low < apart.high < alike.high


def test_a_share_of_one_counts_sentences_and_no_design_makes_more_of_pairs() -> None:
    assert proportion(np.full(5, 4.0), np.full(5, 4.0)) == pytest.approx((1.0, *wilson(1.0, 5)))
    assert proportion(np.zeros(5), np.full(5, 4.0)) == pytest.approx((0.0, *wilson(0.0, 5)))
    assert proportion(np.array([3.0]), np.array([4.0])) == pytest.approx((0.75, *wilson(0.75, 1)))
    assert proportion(np.full(5, 2.0), np.full(5, 4.0)) == pytest.approx((0.5, *wilson(0.5, 20)))
    assert proportion(np.zeros(3), np.zeros(3)) is None
    empty = proportion(np.array([1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0]))
    assert empty == pytest.approx((1.0, *wilson(1.0, 2)))


def test_intervals_of_clusters_hold() -> None:
    """40 sentences of 5 pairs, each sentence with a probability of its own."""
    rng = np.random.default_rng(4)
    holds = 0
    for _ in range(400):
        right = rng.binomial(5, rng.beta(1.8, 0.2, 40)).astype(np.float64)
        found = proportion(right, np.full(40, 5.0))
        assert found is not None
        holds += found.low <= 0.9 <= found.high
    assert holds / 400 > 0.92


def test_halves_count() -> None:
    sums = by_source(pair_sums(np.ones(3), np.array([1.0, 0.0, np.nan]), np.zeros(3)), [1, 2, 3])
    found = measures(sums, ("accuracy", "unigram_accuracy"), seed=0)
    assert found["accuracy"] == pytest.approx((2 / 3, *wilson(2 / 3, 3)))
    assert found["unigram_accuracy"] == pytest.approx((0.5, *wilson(0.5, 3)))


def test_few_sentences_have_no_bootstrap_interval() -> None:
    """Resamples of one pair are all the same, which is no certainty."""
    rng = np.random.default_rng(4)
    sums = pair_sums(rng.normal(size=FEWEST), rng.normal(size=FEWEST), rng.normal(size=FEWEST))
    few, enough = (measures(sums[:n], seed=1) for n in (FEWEST - 1, FEWEST))
    assert few["slope"].low is None and few["correlation"].high is None and few["accuracy"].low is not None
    assert enough["slope"].low is not None and enough["slope"].low < enough["slope"].value
