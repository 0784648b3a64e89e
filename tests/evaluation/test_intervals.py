"""Intervals from resampled sentences, against plain loops, against each other, and by how often they hold."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from truesource.evaluation.core.score import Score
from truesource.evaluation.measures import bootstrap, correlation
from truesource.evaluation.measures.bootstrap import (
    FLOOR,
    Draws,
    Interval,
    ci_part,
    difference,
    ends,
    perplexity_interval,
    ratio_draws,
    resampled_measures,
    resampled_ratio,
    resampled_ratios,
    resampled_times,
    studentised,
)
from truesource.evaluation.measures.contrast import Contrast
from truesource.evaluation.measures.correlation import _Ranks, _weighted_spearman, correlations, spearman, spearman_ends
from truesource.evaluation.measures.paired import Paired
from truesource.generator.language_model import ScoringFrame, TokenScores
from truesource.grammar.support.printable import FEWEST


def drawn_sums(seed: int, n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 9, n).astype(float)
    return count * rng.lognormal(0.0, 1.0, n), count


def slow_studentised(total: np.ndarray, count: np.ndarray, *, seed: int, replicates: int) -> list[float]:
    """The definition, one resample at a time."""

    def ratio_and_error(t: np.ndarray, c: np.ndarray) -> tuple[float, float]:
        ratio = t.sum() / c.sum()
        return ratio, math.sqrt(math.fsum((t - ratio * c) ** 2)) / c.sum()

    value, error = ratio_and_error(total, count)
    pivots = []
    for times in np.concatenate(list(resampled_times(len(total), seed=seed, replicates=replicates))):
        at = np.repeat(np.arange(len(total)), times.astype(int))
        again, its_error = ratio_and_error(total[at], count[at])
        pivots.append((again - value) / max(its_error, FLOOR * error))
    pivots.sort()
    rank = int(0.025 * (replicates + 1))
    return [value - pivots[-rank] * error, value - pivots[rank - 1] * error]


@pytest.mark.parametrize("replicates", [99, 250])
def test_the_interval_of_a_ratio_is_that_of_plain_loops(replicates: int) -> None:
    total, count = drawn_sums(1)
    found = resampled_ratio(total, count, seed=3, replicates=replicates)
    np.testing.assert_allclose(found, slow_studentised(total, count, seed=3, replicates=replicates), rtol=1e-10)


@given(st.integers(0, 1000), st.sampled_from([10, 17, 40]))
def test_a_ratio_is_a_smooth_function_of_sums(seed: int, n: int) -> None:
    """Derivatives by complex steps and moments of sums give what the ratio's own residuals give."""
    total, count = drawn_sums(seed, n)
    sums = np.stack([total, count], axis=1)
    found = resampled_measures(lambda s: s[:, :1] / s[:, 1:], sums, seed=seed, replicates=120)
    np.testing.assert_allclose(
        found[:, 0], resampled_ratio(total, count, seed=seed, replicates=120), rtol=1e-8, atol=1e-10
    )


def test_columns_have_the_intervals_that_they_have_alone() -> None:
    total, count = drawn_sums(5)
    found = resampled_ratios(np.stack([total, -total], 1), np.stack([count, count * 2], 1), seed=4, replicates=199)
    alone = resampled_ratio(total, count, seed=4, replicates=199)
    np.testing.assert_allclose(found[:, 0], alone, rtol=1e-12)
    np.testing.assert_allclose(found[:, 1], -alone[::-1] / 2, rtol=1e-12)


@pytest.mark.parametrize("sentences", [1, 2, FEWEST - 1])
def test_fewer_than_ten_sentences_have_no_interval(sentences: int) -> None:
    rng = np.random.default_rng(1)
    total, count = rng.normal(size=(2, 60)) ** 2
    count[sentences:] = total[sentences:] = 0.0
    assert np.isnan(resampled_ratio(total, count, seed=1)).all()
    assert np.isnan(resampled_ratio(total[:sentences], count[:sentences], seed=1)).all()
    assert np.isnan(studentised(ratio_draws(total[:, None], count[:, None], seed=1))).all()
    sums = np.stack([total, count], axis=1)[:sentences]
    assert np.isnan(resampled_measures(lambda s: s[:, :1] / s[:, 1:], sums, seed=1)).all()
    assert np.isnan(spearman_ends(total, count, np.minimum(np.arange(60), sentences - 1))).all()
    assert ci_part(sentences, 1) == "none/fewer-than-10-sentences"
    assert ci_part(FEWEST, 1) == "sentence-bootstrap-t95/seed1"
    assert ci_part(FEWEST, 1, method="jackknife") == "sentence-jackknife-t95"
    assert np.isfinite(resampled_ratio(np.arange(10.0), np.ones(10), seed=1)).all()


def test_what_is_no_number_is_no_end() -> None:
    assert ends(1.0, 2.0) == (1.0, 2.0)
    assert ends(math.nan, 2.0) == ends(0.0, math.inf) == (None, None)
    with pytest.raises(ValueError, match="is no finite number"):
        Score("ppl", 1.0, "", 0.5, math.nan)


def test_rare_events_have_an_end_and_no_values_below_zero_are_needed() -> None:
    """Resamples without the one sentence that differs have no spread of their own."""
    total = np.zeros(400)
    total[7] = 1.0
    low, high = resampled_ratio(total, np.ones(400), seed=1)
    assert low <= 0.0
    assert 3.0 <= high * 400 <= 9.0  # exact for one event: 5.6
    assert resampled_ratio(np.ones(30), np.ones(30), seed=1).tolist() == [1.0, 1.0]


def test_large_samples_need_no_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The normal limit is what resampling gives, but for the noise of 1,000 resamples."""
    rng = np.random.default_rng(2)
    count = rng.integers(1, 9, 3000).astype(float)
    total = count * rng.normal(2.0, 1.0, 3000)

    def measured() -> np.ndarray:
        sums = np.stack([total, count], axis=1)
        smooth = resampled_measures(lambda s: np.log(s[:, :1] / s[:, 1:]), sums, seed=1)[:, 0]
        return np.stack([resampled_ratio(total, count, seed=1), smooth])

    with monkeypatch.context() as patched:
        patched.setattr(bootstrap, "resampled_times", None)
        limit = measured()
    monkeypatch.setattr(bootstrap, "LARGE", 10**9)
    again = measured()
    np.testing.assert_allclose(limit, again, atol=0.1 * (limit[:, 1] - limit[:, 0]).max())
    assert not np.array_equal(limit, again)


@pytest.mark.long
@pytest.mark.parametrize(("sentences", "least"), [(20, 0.925), (60, 0.935)])
def test_intervals_of_few_skewed_sentences_hold(sentences: int, least: float) -> None:
    """Lengths of 1 to 40 tokens, surprisals that are skewed: percentiles hold in 87 and 91%."""
    rng = np.random.default_rng(6)
    held = 0
    for trial in range(600):
        count = np.ceil(rng.exponential(8.0, sentences))
        total = rng.gamma(0.5 * count, 2.0)  # the mean of a token is 1
        low, high = resampled_ratio(total, count, seed=trial, replicates=399)
        held += low <= 1.0 <= high
    assert least <= held / 600 <= 0.975


@pytest.mark.long
def test_the_difference_of_two_samples() -> None:
    held = 0
    rng = np.random.default_rng(3)
    for trial in range(300):
        sides = [
            ratio_draws(rng.exponential(mean, n)[:, None], np.ones((n, 1)), seed=trial * 2 + i, replicates=399)
            for i, (mean, n) in enumerate([(3.0, 25), (1.0, 40)])
        ]
        low, high = studentised(difference(*sides))[:, 0]
        held += low <= 2.0 <= high
    assert 0.91 <= held / 300 <= 0.98


# -- correlations -----------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=4, max_size=25),
)
def test_weighted_spearman_is_that_of_repeated_positions(rows: list[tuple[int, int, int]]) -> None:
    x, y, times = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    at = np.repeat(np.arange(len(x)), times.astype(int))
    rho = _weighted_spearman(_Ranks(x), _Ranks(y), times[None], np.arange(len(x)))[0] if len(at) else [math.nan]
    if len(np.unique(x[at])) < 2 or len(np.unique(y[at])) < 2:
        assert np.isnan(rho).all()
    else:
        plain = spearman(x[at], y[at] if not np.array_equal(x[at], y[at]) else y[at] + 1.0)
        assert rho[0] == pytest.approx(plain, abs=1e-10)


def test_influences_on_spearman_are_its_derivatives() -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(0, 12, 60).astype(float)
    y = x + rng.integers(0, 9, 60)
    starts = np.array([0, 5, 6, 20, 31, 33, 50])
    row = np.repeat(np.arange(7), np.diff(starts, append=60))
    weights = rng.integers(1, 4, 7).astype(float)
    _, influence = _weighted_spearman(_Ranks(x), _Ranks(y), weights[row][None], starts)
    for k in range(7):
        moved = np.stack([weights, weights])
        moved[:, k] += 1e-5, -1e-5
        up, down = _weighted_spearman(_Ranks(x), _Ranks(y), moved[:, row], starts)[0]
        assert influence[0, k] == pytest.approx((up - down) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_the_interval_of_rho_is_that_of_the_jackknife(one_by_one: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By leaving out the tokens of each sentence in turn."""
    rng = np.random.default_rng(5)
    sentence = np.repeat(np.arange(14), rng.integers(1, 9, 14))
    x = rng.integers(0, 12, len(sentence)).astype(float)
    y = x + rng.integers(0, 9, len(sentence))
    z = [math.atanh(stats.spearmanr(x[sentence != i], y[sentence != i]).statistic) for i in range(14)]
    error = math.sqrt(13 / 14 * math.fsum((v - sum(z) / 14) ** 2 for v in z))
    whole, t = math.atanh(stats.spearmanr(x, y).statistic), stats.t.ppf(0.975, 13)
    if one_by_one:
        monkeypatch.setattr(correlation, "CELLS", 1)
    found = spearman_ends(x, y, sentence)
    np.testing.assert_allclose(found, [math.tanh(whole - t * error), math.tanh(whole + t * error)], rtol=1e-10)


def test_of_many_sentences_influences_are_the_jackknife(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 900))
    sentence = np.repeat(np.arange(300), 3)
    limit = spearman_ends(x, x + y, sentence)
    monkeypatch.setattr(correlation, "LARGE", 10**9)
    again = spearman_ends(x, x + y, sentence)
    np.testing.assert_allclose(limit, again, atol=0.02 * (again[1] - again[0]))
    assert not np.array_equal(limit, again)


def test_a_side_that_one_sentence_keeps_from_being_constant_has_no_interval() -> None:
    x = np.zeros(12)
    x[3] = 1.0
    assert np.isnan(spearman_ends(x, np.arange(12.0), np.arange(12))).all()


@pytest.mark.long
def test_intervals_of_rho_of_ten_sentences_hold() -> None:
    """1 to 12 tokens that have something in common; the studentised bootstrap holds in 90%."""
    rng = np.random.default_rng(8)

    def sample(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sentence = np.repeat(np.arange(n), np.ceil(rng.exponential(5.0, n)).astype(int))
        x = rng.gamma(2.0, 2.0, len(sentence))
        return x, x + rng.normal(0.0, 1.0, n)[sentence] + rng.normal(0.0, 1.0, len(sentence)), sentence

    whole = spearman(*sample(60_000)[:2])
    held = sum(low <= whole <= high for low, high in (spearman_ends(*sample(10)) for _ in range(1500)))
    assert 0.935 <= held / 1500 <= 0.97


@pytest.mark.long
def test_intervals_of_correlations_hold() -> None:
    """15 sentences of 1 to 8 tokens with something in common; the truth is that of a large sample."""
    rng = np.random.default_rng(9)

    def sample(n: int) -> Paired:
        sentence = np.repeat(np.arange(n, dtype=np.int32), rng.integers(1, 9, n))
        common = rng.normal(0.0, 0.5, n)[sentence]
        truth = -rng.gamma(2.0, 2.0, len(sentence))
        model = truth + common + rng.normal(0.0, 1.0, len(sentence))
        none = np.empty(0, np.int32)
        return Paired(
            model=model,
            oracle=truth,
            sentence=sentence,
            position=sentence,
            impossible_model=none,
            impossible_oracle=none,
            n_sentences=n,
        )

    names = ("rho", "r2_pearson", "r2_identity", "r2_released")
    wanted = {name: found.value for name, found in correlations(sample(40_000)).items()}
    held = dict.fromkeys(names, 0)
    for trial in range(300):
        for name, found in correlations(sample(15), seed=trial).items():
            assert found.low is not None
            assert found.high is not None
            assert found.low <= found.value <= found.high
            assert found.high <= 1.0
            held[name] += found.low <= wanted[name] <= found.high
    for name in names:
        assert 0.9 <= held[name] / 300 <= 0.985, name


# -- ends enclose the value -----------------------------------------------------------------------------


def test_a_uniform_model_has_an_interval_that_its_perplexity_lies_in() -> None:
    """All sentences agree, so the interval is a point, up to the rounding of two ways to compute it."""
    for words in (3, 7, 13, 97):
        lengths = np.arange(1, 31)
        scores = TokenScores(
            np.full(int(lengths.sum()), -np.log(words)),
            np.repeat(np.arange(30, dtype=np.int32), lengths),
            np.concatenate([np.arange(n, dtype=np.int32) for n in lengths]),
            np.zeros(0, dtype=np.int32),
            30,
            ScoringFrame(),
        )
        found = perplexity_interval(scores)
        assert found.low is not None and found.high is not None
        assert found.low <= found.value <= found.high
        assert found.high - found.low < 1e-12 * words


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.0, 3.0, (1.0, 3.0)),
        (2.0000000000000004, 3.0, (2.0, 3.0)),
        (1.0, 1.9999999999999998, (1.0, 2.0)),
        (None, None, (None, None)),
        (1.0, None, (1.0, None)),
    ],
)
def test_whatever_has_an_interval_has_its_value_inside(
    low: float | None, high: float | None, expected: tuple[float | None, float | None]
) -> None:
    for made in (Interval(2.0, low, high), Score("x", 2.0, "", low, high), Contrast(2.0, low, high)):
        assert (made.low, made.high) == expected
    copy = pickle.loads(pickle.dumps(Interval(2.0, low, high)))
    assert copy == (2.0, *expected) and type(copy) is Interval


def test_resamples_that_all_lie_above_the_value_leave_it_an_end() -> None:
    draws = Draws(np.array([2.0]), np.array([1.0]), np.full((100, 1), 1.5), np.full((100, 1), 1.0))
    assert studentised(draws).tolist() == [[2.0], [2.5]]
