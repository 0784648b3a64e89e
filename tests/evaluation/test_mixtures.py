"""Weights of mixtures of predictors, against searches of other kinds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from truesource.evaluation.documents.mixtures import GRID, best_on_simplex, crossings, intervals, nearest, slopes
from truesource.evaluation.measures.bootstrap import resampled_times


def test_weights_of_resampled_documents_are_those_of_a_search() -> None:
    """Of two predictors with events that only one allows, and documents that differ in what they are nearest to."""
    random = np.random.default_rng(2)
    exact, q = random.dirichlet(np.full(5, 0.5), (2, 60)), random.dirichlet(np.full(5, 0.8), 60)
    exact[0, ::7, 0] = exact[1, 1::7, 1] = 0.0
    exact /= exact.sum(axis=2, keepdims=True)
    starts = np.array([0, 4, 9, 20, 23, 31, 40, 44, 52, 57])
    times = np.concatenate([np.eye(10)[:3], next(iter(resampled_times(10, seed=3, replicates=20)))])
    found = crossings(times @ slopes(exact, q, starts))
    of_position = np.repeat(np.arange(10), np.diff([*starts, 60]))

    for each, weight in zip(times, found, strict=True):

        def loss(w: float, each: np.ndarray = each) -> float:
            return -float((each[of_position, None] * q * np.log(w * exact[0] + (1.0 - w) * exact[1])).sum())

        wanted = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9}).x
        assert weight == pytest.approx(wanted, abs=2e-4)
    assert np.ptp(found) > 0.1
    assert crossings(np.array([np.full(len(GRID), -1.0), np.full(len(GRID), 1.0)])).tolist() == [0.0, 1.0]


def gaps(m: int, seed: int, t: int = 300, e: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Predictors with events that not all allow, and a model near a mixture of them."""
    random = np.random.default_rng(seed)
    exact = random.dirichlet(np.full(e, 0.5), (m, t))
    exact[0, ::7, 0] = exact[1, 1::7, 1] = 0.0
    exact /= exact.sum(axis=2, keepdims=True)
    q = np.tensordot(random.dirichlet(np.full(m, 0.4)), exact, axes=1) + 0.3 * random.dirichlet(np.full(e, 0.8), t)
    return exact, q / q.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("m", "seed"), [(2, 1), (3, 2), (3, 3), (5, 4), (8, 5)])
def test_the_nearest_mixture_meets_the_conditions_of_a_maximum(m: int, seed: int) -> None:
    """Karush, Kuhn and Tucker: no predictor has a slope above the mass of the model, and those in use have that."""
    exact, q = gaps(m, seed)
    weight = nearest(exact, q)
    assert weight.sum() == pytest.approx(1.0, abs=1e-12) and (weight >= 0.0).all()
    mixture = np.tensordot(weight, exact, axes=1)
    slope = (q * exact / np.where(mixture > 0.0, mixture, 1.0)).sum(axis=(1, 2)) / q.sum()
    assert slope.max() <= 1.0 + 1e-9
    assert slope[weight > 1e-6] == pytest.approx(1.0, abs=1e-7)


def test_a_quadratic_function_is_greatest_where_a_search_says() -> None:
    random = np.random.default_rng(3)
    weight = random.dirichlet(np.ones(4))
    roots = random.normal(size=(30, 4, 4))
    slope, bend = 0.7 * random.normal(size=(30, 4)), -roots @ roots.transpose(0, 2, 1)
    found = best_on_simplex(slope, bend, weight)
    one: dict[str, object] = {"type": "eq", "fun": lambda w: w.sum() - 1.0}
    for g, h, w in zip(slope, bend, found, strict=True):

        def loss(v: np.ndarray, g: np.ndarray = g, h: np.ndarray = h) -> float:
            return float(-(g @ (v - weight) + 0.5 * (v - weight) @ h @ (v - weight)))

        options = {"ftol": 1e-15, "maxiter": 500}
        wanted = minimize(
            loss, np.full(4, 0.25), method="SLSQP", bounds=[(0.0, 1.0)] * 4, constraints=one, options=options
        )
        assert loss(w) <= wanted.fun + 1e-9 and w == pytest.approx(wanted.x, abs=1e-4)
    assert (found == 0.0).any() and (found > 0.0).all(axis=1).any()


@pytest.mark.long
def test_intervals_of_three_weights_are_those_of_mixtures_found_anew() -> None:
    exact, q = gaps(3, 6, t=1200)
    starts = np.arange(0, 1200, 12)
    weight = nearest(exact, q)
    low, high = intervals(exact, q, starts, weight, seed=3)
    of_position = np.repeat(np.arange(100), 12)
    times = next(iter(resampled_times(100, seed=9)))[:200]
    drawn = np.array([nearest(exact, each[of_position, None] * q) for each in times])
    wanted = np.percentile(drawn, [2.5, 97.5], axis=0)
    assert (low < weight).all() and (weight < high).all()
    assert np.stack([low, high]) == pytest.approx(wanted, abs=0.12 * (high - low).max())


def test_intervals_of_two_weights_are_alike_by_both_ways() -> None:
    """By slopes, and by derivatives with a third predictor that is of no use."""
    exact, q = gaps(2, 7, t=1200)
    q = np.tensordot([0.6, 0.4], exact, axes=1) * 0.9 + 0.1 * q
    useless = np.full((1, *q.shape), 1e-3)
    starts = np.arange(0, 1200, 12)
    weight = nearest(exact, q)
    with_third = np.concatenate([exact, useless])
    three = nearest(with_third, q)
    assert three == pytest.approx([*weight, 0.0], abs=1e-8)
    two_ends = np.stack(intervals(exact, q, starts, weight, seed=3))
    three_ends = np.stack(intervals(with_third, q, starts, three, seed=3))
    assert three_ends[:, :2] == pytest.approx(two_ends, abs=2e-3)
