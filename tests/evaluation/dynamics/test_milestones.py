"""Steps from which a curve stays below a level, against a slow search, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.evaluation.dynamics.table import Milestone, crossings, milestones, stays_below


def at(level: float, values: Sequence[float], steps: Sequence[int] = (0, 1, 3, 7)) -> tuple[float, float, float]:
    return tuple(float(x) for x in stays_below(steps, np.array(values), np.float64(level)[...]))  # type: ignore[return-value]


def test_steps_are_interpolated_on_the_logarithmic_axis() -> None:
    curve = [8.0, 8.0, 4.0, 0.0]  # 1 + step: 1, 2, 4, 8
    assert at(4.1, curve) == pytest.approx((2 * 2 ** (3.9 / 4) - 1, 1, 3))
    assert at(2.0, curve) == pytest.approx((4 * 2**0.5 - 1, 3, 7))
    assert at(6.0, curve) == pytest.approx((2 * 2**0.5 - 1, 1, 3))
    assert at(9.0, curve) == (0.0, 0.0, 0.0)
    assert at(9.0, curve[1:], steps=(2, 3, 7)) == (2.0, 2.0, 2.0)
    assert at(1e-9, [8.0, 4.0, 2.0, 1.0]) == (math.inf, 7.0, math.inf)
    assert at(math.nan, curve) == (math.inf, math.inf, math.inf)


def test_what_counts_is_where_a_curve_stays_below() -> None:
    assert at(0.2, [0.1, 0.5, 0.9, 0.3]) == (math.inf, 7.0, math.inf)  # begins below, ends above
    assert at(5.0, [8.0, 1.0, 9.0, 1.0]) == pytest.approx((4 * 2**0.5 - 1, 3.0, 7.0))  # the last time counts
    assert at(0.2, [-0.1, 0.4, 0.1, 0.0])[1:] == (1.0, 3.0)


def test_a_mean_above_the_truth_is_not_below_a_level() -> None:
    assert at(0.2, [1.0, 0.5, 0.1, -0.28])[0] == math.inf
    assert at(0.2, [1.0, 0.6, -0.4, -0.1]) == pytest.approx((4 * 2 ** (0.2 / 0.3) - 1, 3, 7))  # from beyond
    found = crossings((0, 1), np.array([[1.0, -0.6], [1.0, -0.4], [-1.0, 0.0]]), None)
    assert np.isinf(found.step).tolist() == [True, False, True]


@pytest.mark.long
@settings(max_examples=60)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=7), st.floats(0.1, 2))
def test_crossings_are_those_of_a_slow_search(values: list[float], level: float) -> None:
    steps = [0, 1, 2, 4, 8, 16, 32][: len(values)]
    found = at(level, values, steps)
    below = [abs(v) < level for v in values]
    c = next((c for c in range(len(values)) if all(below[c:])), None)
    if c is None:
        assert found == (math.inf, steps[-1], math.inf)
    elif c == 0:
        assert found == (0.0, 0.0, 0.0)
    else:
        assert found[1:] == (steps[c - 1], steps[c])
        x = math.log1p(found[0])
        lower, upper = math.log1p(steps[c - 1]), math.log1p(steps[c])
        part = (x - lower) / (upper - lower)
        assert -1e-9 <= part <= 1 + 1e-9
        assert abs(values[c - 1] + part * (values[c] - values[c - 1])) == pytest.approx(level)


def reached(steps: Sequence[int], value: np.ndarray, drawn: np.ndarray, level: float | None) -> list[Milestone]:
    """Of curves (G, C), and resampled (R, G, C)."""
    return milestones(crossings(steps, value, level), crossings(steps, drawn, level), ~np.isnan(drawn[..., 0]))


def test_intervals_of_steps_reach_from_checkpoint_to_checkpoint() -> None:
    steps = (0, 1, 3, 7)
    value = np.array([[4.0, 3.0, 1.0, 0.5]])
    (same,) = reached(steps, value, np.stack([value] * 40), None)
    assert (same.low, same.high) == (1.0, 3.0)  # though all resamples agree on the step
    assert same.step == pytest.approx(2 * 2**0.5 - 1)
    later = np.array([[4.0, 3.9, 2.5, 0.5]])
    (both,) = reached(steps, value, np.stack([value, later] * 20), None)
    assert (both.low, both.high) == (1.0, 7.0)
    (open_,) = reached(steps, value, np.stack([value, value * 0 + 4.0] * 20), None)
    assert (open_.low, open_.high) == (1.0, None)
    (none,) = reached(steps, value, np.full((40, 1, 4), np.nan), None)
    assert (none.step, none.low, none.high) == (same.step, None, None)


def test_steps_that_are_never_reached_are_later_than_the_last_checkpoint_or_have_none() -> None:
    steps = (0, 1, 3)
    value = np.array([[4.0, 2.0, 1.0], [1.0, 1.0, 0.9], [-0.5, -0.2, -0.1]])
    drawn = np.stack([value] * 40)
    half, never, negative = reached(steps, value, drawn, None)
    assert half.step == pytest.approx(1.0, abs=2.1)
    assert (never.step, never.low, never.high) == (None, 3.0, None)
    assert (negative.step, negative.low, negative.high) == (None, None, None)  # nothing to halve
    assert reached(steps, value, drawn, 0.95)[1].low == 1.0
    assert reached(steps, value, drawn, 0.6)[2] == Milestone(0.0, 0.0, 0.0)


def test_leaving_out_every_second_checkpoint_leaves_the_step_in_its_interval() -> None:
    steps, rng = [0, *(2**k for k in range(11))], np.random.default_rng(1)
    x = np.log1p(steps)
    for middle, slope in zip(rng.uniform(1, 6, 30), rng.uniform(0.7, 6, 30), strict=True):
        curve = 3.0 / (1.0 + np.exp(slope * (x - middle)))
        full = crossings(steps, curve, None)
        some = crossings(steps[::2], curve[::2], None)
        assert some.before <= full.step <= some.at
