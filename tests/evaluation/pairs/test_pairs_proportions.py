"""Intervals of accuracies: how often they hold, and what pairs of one sentence do to them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from truesource.evaluation.measures.bootstrap import proportion, wilson
from truesource.evaluation.pairs.odds import by_source, measures, pair_sums, sources
from truesource.grammar.support.printable import FEWEST


@pytest.mark.parametrize(("right", "n"), [(0, 10), (3, 11), (20, 20), (97, 100)])
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
    alike = proportion(np.repeat([4.0, 0.0], [6, 4]), np.full(10, 4.0))
    apart = proportion(np.repeat([1.0, 0.0], [24, 16]), np.ones(40))
    assert alike is not None
    assert apart is not None
    assert alike.value == apart.value == 0.6
    variance = 10 / 9 * (6 * 1.6**2 + 4 * 2.4**2) / 40**2  # residuals 4 - 0.6 * 4 and 0 - 0.6 * 4
    effect = variance / (0.24 / 39)
    assert effect == pytest.approx(13 / 3)
    assert alike[1:] == pytest.approx(wilson(0.6, 40 / effect))
    assert alike.low < apart.low < apart.high < alike.high


def test_a_share_of_one_counts_sentences_and_no_design_makes_more_of_pairs() -> None:
    assert proportion(np.full(12, 4.0), np.full(12, 4.0)) == pytest.approx((1.0, *wilson(1.0, 12)))
    assert proportion(np.zeros(12), np.full(12, 4.0)) == pytest.approx((0.0, *wilson(0.0, 12)))
    assert proportion(np.full(12, 2.0), np.full(12, 4.0)) == pytest.approx((0.5, *wilson(0.5, 48)))
    assert proportion(np.zeros(3), np.zeros(3)) is None
    empty = proportion(np.append(np.ones(10), 0.0), np.append(np.ones(10), 0.0))
    assert empty == pytest.approx((1.0, *wilson(1.0, 10)))


@pytest.mark.parametrize("counted", [[4.0], [4.0] * 9, [*[1.0] * 9, 0.0, 0.0]])
def test_shares_of_few_sentences_have_no_interval(counted: list[float]) -> None:
    """However many pairs each of them has."""
    found = proportion(np.array(counted) / 2, np.array(counted))
    assert found == (0.5, None, None)


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
    odds = np.tile([1.0, 0.0, np.nan], 4)
    sums = by_source(pair_sums(np.ones(12), odds, np.zeros(12)), range(12))
    found = measures(sums, ("accuracy", "unigram_accuracy"), seed=0)
    assert found["accuracy"] == pytest.approx((2 / 3, *wilson(2 / 3, 12)))
    assert found["unigram_accuracy"] == pytest.approx((0.5, *wilson(0.5, 12)))


def test_few_sentences_have_no_interval() -> None:
    """Resamples of one pair are all the same, which is no certainty."""
    rng = np.random.default_rng(4)
    sums = pair_sums(rng.normal(size=FEWEST), rng.normal(size=FEWEST), rng.normal(size=FEWEST))
    few, enough = (measures(sums[:n], seed=1) for n in (FEWEST - 1, FEWEST))
    assert all(found.low is None and found.high is None for found in few.values())
    assert enough["slope"].low is not None and enough["slope"].low < enough["slope"].value
    assert enough["accuracy"].low is not None and enough["accuracy"].low < enough["accuracy"].value
    assert {name: sources(sums, name) for name in ("accuracy", "slope", "correlation")} == {
        "accuracy": FEWEST,
        "slope": FEWEST,
        "correlation": FEWEST,
    }
