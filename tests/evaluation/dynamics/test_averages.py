"""Means and medians of groups against slow loops, their intervals, and what they take of memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_median import slow_median

from truesource.evaluation.dynamics import groupings as averages
from truesource.evaluation.dynamics.groupings import (
    Members,
    enough_sentences,
    group_means,
    group_medians,
    median_intervals,
)
from truesource.evaluation.measures.bootstrap import REPLICATES, TAILS, resampled_ratio, resampled_times


def members(weight: np.ndarray) -> list[Members]:
    """Groups from a table of shares (T, G)."""
    return [Members(np.flatnonzero(column), column[column > 0.0]) for column in weight.T]


@pytest.mark.long
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=12))
def test_a_weight_of_n_is_n_equal_tokens(pairs: list[tuple[int, int]]) -> None:
    values = np.array([v for v, _ in pairs], dtype=np.float64)
    weight = np.array([w for _, w in pairs], dtype=np.float64)
    repeated = np.repeat(values, weight.astype(int))
    assert group_medians(values, members(weight[:, None]))[0] == np.median(repeated)
    assert group_medians(values, members(weight[:, None] / 8.0))[0] == np.median(repeated)


def test_intervals_are_those_of_resampled_sentences() -> None:
    rng = np.random.default_rng(2)
    sentence = np.repeat(np.arange(24), rng.integers(1, 5, 24)).astype(np.int32)
    values = rng.normal(size=(len(sentence), 2))
    weight = rng.dirichlet([3.0, 3.0], len(sentence))
    (means,) = group_means(values, members(weight), sentence, seed=7)
    medians = median_intervals(values[:, 1], members(weight), sentence, seed=7)
    times = np.concatenate(list(resampled_times(24, seed=7)))
    assert times.shape == (REPLICATES, 24)
    for g in range(2):
        for c in range(2):
            total = np.bincount(sentence, weight[:, g] * values[:, c])
            ends = resampled_ratio(total, np.bincount(sentence, weight[:, g]), seed=7)
            np.testing.assert_allclose([means.low[c, g], means.high[c, g]], ends, rtol=1e-12)
        drawn = [
            slow_median([(values[t, 1], n[s] * weight[t, g]) for t, s in enumerate(sentence) if n[s]]) for n in times
        ]
        np.testing.assert_allclose(medians[:, g], np.quantile(drawn, TAILS), rtol=1e-9)


def test_the_values_near_the_median_are_enough_and_others_are_looked_at_where_they_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    sentence = np.repeat(np.arange(80), rng.integers(2, 9, 80)).astype(np.int32)
    values = np.round(rng.normal(size=len(sentence)), 1)  # ties
    weight = rng.dirichlet([0.2, 0.2, 0.2], len(sentence))
    weight[:, 1:] *= sentence[:, None] > 20  # some sentences without
    looked = []
    whole = averages._sorted

    def counted(*parts: object) -> object:
        looked.append(1)
        return whole(*parts)  # type: ignore[arg-type]

    monkeypatch.setattr(averages, "_sorted", counted)
    near = median_intervals(values, members(weight), sentence, seed=1)
    assert len(looked) == 3  # once to find the window of each
    monkeypatch.setattr(averages, "WINDOW", 0.3)
    narrow = median_intervals(values, members(weight), sentence, seed=1)
    assert len(looked) > 6
    monkeypatch.setattr(averages, "WINDOW", 1e9)
    monkeypatch.setattr(averages, "CELLS", 1000)
    np.testing.assert_allclose(near, median_intervals(values, members(weight), sentence, seed=1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(near, narrow, rtol=0, atol=1e-12)


def test_groups_come_a_few_at_once_with_the_same_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    sentence = np.repeat(np.arange(30), 4).astype(np.int32)
    values, weight = rng.normal(size=(120, 3)), rng.dirichlet([1.0] * 5, 120)
    (whole,) = group_means(values, members(weight), sentence, seed=2)
    monkeypatch.setattr(averages, "CELLS", 2 * 5 * 3 * REPLICATES)
    parts = list(group_means(values, members(weight), sentence, seed=2))
    assert len(parts) == 3
    for name in ("value", "low", "high", "resampled"):
        joined = np.concatenate([getattr(part, name) for part in parts], axis=-1)
        np.testing.assert_allclose(joined, getattr(whole, name), rtol=1e-12)


def test_resampling_many_tokens_takes_little_memory() -> None:
    rng = np.random.default_rng(6)
    sentence = np.repeat(np.arange(1200), 25).astype(np.int32)
    values, every = rng.normal(size=(len(sentence), 4)), [Members(np.arange(len(sentence)), np.ones(len(sentence)))]
    tracemalloc.start()
    try:
        list(group_means(values, every, sentence, seed=1))
        median_intervals(values[:, 0].copy(), every, sentence, seed=1)
        assert tracemalloc.get_traced_memory()[1] < 60 * 2**20
    finally:
        tracemalloc.stop()


def test_groups_in_fewer_than_ten_sentences_have_no_interval() -> None:
    rng = np.random.default_rng(8)
    sentence = np.repeat(np.arange(40), 3).astype(np.int32)
    values = rng.normal(size=(120, 2))
    weight = np.stack([sentence == 0, sentence < 9, sentence < 10, sentence >= 0, sentence >= 0], axis=1).astype(float)
    weight[:, 4] = np.where(sentence == 0, 1.0, 1e-6)  # a share that is next to none
    (means,) = group_means(values, members(weight), sentence, seed=1)
    medians = median_intervals(values[:, 0], members(weight), sentence, seed=1)
    for ends in (means.low[0], means.high[1], *medians, means.resampled[0, 0]):
        assert np.isnan(ends).tolist() == [True, True, False, False, True]
    assert np.isfinite(means.value).all()
    assert enough_sentences(np.full(10, 0.3))
    assert not enough_sentences(np.full(9, 0.3))
