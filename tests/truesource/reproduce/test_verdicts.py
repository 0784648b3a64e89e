"""Claims: what holds, what does not, what stays undecided; ties, missing seeds, numbers that are not there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp, ttest_rel

from truesource.studies.reproduce.quantities import (
    QuantityValue,
    Verdict,
    all_of,
    judged,
    mean_of_seeds,
    minus,
    over,
    seeds_to_decide,
    verdict_of,
)
from truesource.studies.reproduce.rows import Claim, Quantity, Row

VALUES = st.lists(st.integers(-1000, 1000).map(lambda n: n / 64), min_size=2, max_size=6)  #: exact in binary
RANGES = st.tuples(st.integers(-50, 50), st.integers(0, 20), st.integers(0, 20))


def interval(value: float, below: float, above: float) -> QuantityValue:
    return QuantityValue(float(value), float(value - below), float(value + above), over="the data of one run")


def verdict(test: dict[str, Any], **values: QuantityValue) -> Verdict:
    return judged(Claim(says="so", **test), values).verdict


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (interval(1, 0.2, 0.2), interval(2, 0.2, 0.2), Verdict.HOLDS),
        (interval(2, 0.2, 0.2), interval(1, 0.2, 0.2), Verdict.REVERSED),
        (interval(1, 0.5, 0.5), interval(2, 0.5, 0.5), Verdict.UNDECIDED),  # they touch
        (interval(1, 0.6, 0.6), interval(2, 0.6, 0.6), Verdict.UNDECIDED),
        (QuantityValue(1.0), QuantityValue(1.0), Verdict.UNDECIDED),  # a tie
        (QuantityValue(1.0), QuantityValue(2.0), Verdict.HOLDS),
        (QuantityValue(None), QuantityValue(2.0), Verdict.UNDECIDED),  # an infinite value
        (QuantityValue(1.0), QuantityValue(None), Verdict.UNDECIDED),
        (mean_of_seeds({1: 1.0, 2: 5.0, 3: 9.0}), mean_of_seeds({1: 2.0, 2: 6.1, 3: 9.9}), Verdict.HOLDS),  # paired
        (mean_of_seeds({1: 1.0, 2: 5.0}), mean_of_seeds({8: 2.0, 9: 6.0}), Verdict.UNDECIDED),  # no seed in common
        (mean_of_seeds({1: 1.0, 2: 2.0, 3: 3.0}), mean_of_seeds({2: 3.0, 3: 4.0}), Verdict.HOLDS),  # two in common
        (mean_of_seeds({1: 1.0, 2: 2.0}), mean_of_seeds({2: 3.0}), Verdict.UNDECIDED),  # one in common
    ],
)
def test_less(a: QuantityValue, b: QuantityValue, found: Verdict) -> None:
    assert verdict({"less": ("a", "b")}, a=a, b=b) is found


def test_numbers_without_interval_are_said_to_be_compared_as_they_are() -> None:
    claim = Claim(says="so", less=("a", "b"))
    assert judged(claim, {"a": QuantityValue(1.0), "b": QuantityValue(2.0)}).exact
    assert not judged(claim, {"a": interval(1, 0.1, 0.1), "b": QuantityValue(2.0)}).exact
    assert not judged(claim, {"a": QuantityValue(None), "b": QuantityValue(2.0)}).exact


@pytest.mark.long
@given(VALUES, VALUES)
def test_a_difference_of_seeds_is_the_paired_t_test(one: list[float], other: list[float]) -> None:
    n = min(len(one), len(other))
    differences = np.subtract(other[:n], one[:n])
    assume(float(np.ptp(differences)) > 0.1)
    p = float(ttest_rel(other[:n], one[:n]).pvalue)
    assume(abs(p - 0.05) > 1e-6)
    found = verdict(
        {"less": ("a", "b")}, a=mean_of_seeds(dict(enumerate(one))), b=mean_of_seeds(dict(enumerate(other)))
    )
    side = Verdict.HOLDS if differences.mean() > 0 else Verdict.REVERSED
    assert found is (side if p < 0.05 else Verdict.UNDECIDED)


@pytest.mark.long
@given(VALUES)
def test_the_sign_of_a_quantity_is_the_t_test(values: list[float]) -> None:
    assume(np.ptp(values) > 0.1)
    p = float(ttest_1samp(values, 0.0).pvalue)
    assume(abs(p - 0.05) > 1e-6)
    quantity = mean_of_seeds(dict(enumerate(values)))
    positive = verdict({"positive": "a"}, a=quantity)
    negative = verdict({"negative": "a"}, a=quantity)
    assert (positive is Verdict.UNDECIDED) == (negative is Verdict.UNDECIDED) == (p > 0.05)
    assert (positive is Verdict.HOLDS) == (negative is Verdict.REVERSED) == (p < 0.05 and np.mean(values) > 0)


@given(RANGES, RANGES)
def test_a_claim_and_its_opposite(one: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    a, b = interval(*one), interval(*other)
    opposite = {Verdict.HOLDS: Verdict.REVERSED, Verdict.REVERSED: Verdict.HOLDS, Verdict.UNDECIDED: Verdict.UNDECIDED}
    assert verdict({"less": ("a", "b")}, a=a, b=b) is opposite[verdict({"less": ("b", "a")}, a=a, b=b)]
    assert verdict({"increasing": ["a", "b"]}, a=a, b=b) is verdict({"less": ("a", "b")}, a=a, b=b)
    assert verdict({"decreasing": ["a", "b"]}, a=a, b=b) is verdict({"less": ("b", "a")}, a=a, b=b)
    assert verdict({"smallest": {"of": "a", "among": ["b"]}}, a=a, b=b) is verdict({"less": ("a", "b")}, a=a, b=b)
    assert verdict({"largest": {"of": "a", "among": ["b"]}}, a=a, b=b) is verdict({"less": ("b", "a")}, a=a, b=b)


@given(RANGES, st.integers(-60, 60), st.integers(1, 60))
def test_a_range_holds_where_the_whole_interval_is_in_it(quantity: tuple[int, int, int], low: int, width: int) -> None:
    a = interval(*quantity)
    low_end, high_end = a.bounds
    inside = low <= low_end and high_end <= low + width
    outside = high_end < low or low_end > low + width
    expected = Verdict.HOLDS if inside else Verdict.REVERSED if outside else Verdict.UNDECIDED
    assert verdict({"between": {"of": "a", "from": low, "to": low + width}}, a=a) is expected
    middle = {"of": "a", "to": low + width / 2, "within": width / 2}
    assert verdict({"equal": middle}, a=a) is expected


def test_a_range_may_have_one_end() -> None:
    assert verdict({"between": {"of": "a", "from": 0.9}}, a=interval(0.95, 0.04, 0.05)) is Verdict.HOLDS
    assert verdict({"between": {"of": "a", "to": 0.9}}, a=interval(0.95, 0.04, 0.05)) is Verdict.REVERSED
    assert (
        verdict({"between": {"of": "a", "from": 0.9, "to": 1.0}}, a=QuantityValue(1.0)) is Verdict.HOLDS
    )  # the end counts


def test_quantities_are_equal_only_where_their_difference_is_known_to_be_small() -> None:
    equal = {"equal": {"of": "a", "to": "b", "within": 0.1}}
    assert verdict(equal, a=interval(1, 0.01, 0.01), b=interval(1.02, 0.01, 0.01)) is Verdict.HOLDS
    assert verdict(equal, a=interval(1, 0.2, 0.2), b=interval(1, 0.2, 0.2)) is Verdict.UNDECIDED  # too little is known
    assert verdict(equal, a=interval(1, 0.01, 0.01), b=interval(2, 0.01, 0.01)) is Verdict.REVERSED
    assert verdict(equal, a=QuantityValue(1.0), b=QuantityValue(1.0)) is Verdict.HOLDS


def test_an_order_is_reversed_where_one_step_is() -> None:
    steps = {"a": interval(1, 0.1, 0.1), "b": interval(2, 0.1, 0.1), "c": interval(1.5, 0.1, 0.1)}
    assert verdict({"increasing": ["a", "b", "c"]}, **steps) is Verdict.REVERSED
    assert verdict({"increasing": ["a", "c", "b"]}, **steps) is Verdict.HOLDS
    wide = {**steps, "c": interval(2, 1, 1)}
    assert verdict({"increasing": ["a", "b", "c"]}, **wide) is Verdict.UNDECIDED
    assert verdict({"smallest": {"of": "a", "among": ["b", "c"]}}, **steps) is Verdict.HOLDS
    assert verdict({"largest": {"of": "c", "among": ["a", "b"]}}, **steps) is Verdict.REVERSED


def test_a_paired_difference_of_the_run_comes_first() -> None:
    claim = Claim(says="so", less=("a", "b"))
    values = {"a": interval(1, 5, 5), "b": interval(2, 5, 5)}
    known = judged(claim, values, lambda one, other: interval(0.1, 0.05, 0.05) if (one, other) == ("b", "a") else None)
    assert known.verdict is Verdict.HOLDS and known.differences[0].measured.value == 0.1


ROW = Row(
    name="x-table-1",
    shows="Table 1",
    title="t",
    published="p",
    run="tiny",
    quantities={"a": Quantity(record="kl")},
    claims=[Claim(says="so", positive="a")],
)


@pytest.mark.parametrize(
    ("claims", "found"),
    [
        ([Verdict.HOLDS, Verdict.HOLDS], Verdict.HOLDS),
        ([Verdict.HOLDS, Verdict.UNDECIDED], Verdict.UNDECIDED),
        ([Verdict.UNDECIDED, Verdict.REVERSED], Verdict.REVERSED),
        ([Verdict.HOLDS, Verdict.UNDECIDED, Verdict.REVERSED], Verdict.PART),
    ],
)
def test_the_verdict_of_a_row(claims: list[Verdict], found: Verdict) -> None:
    assert verdict_of(ROW, claims) is found
    assert all_of(claims) is (Verdict.REVERSED if found is Verdict.PART else found)
    corrected = verdict_of(ROW.model_copy(update={"correction": "a formula"}), claims)
    assert corrected is (Verdict.CORRECTED if found is Verdict.HOLDS else found)
    untested = Row(name="x-figure-1", shows="Figure 1", title="t", published="p", untested="a drawing")
    assert verdict_of(untested, []) is Verdict.UNTESTED


@given(RANGES, RANGES)
def test_differences_and_ratios_hold_all_that_the_intervals_allow(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    a, b = interval(*one), interval(*other)
    difference, ratio = minus(a, b), over(a, b)
    for x in (*a.bounds, a.value):
        for y in (*b.bounds, b.value):
            assert x is not None and y is not None and difference.low is not None and difference.high is not None
            assert difference.low <= x - y <= difference.high
            if ratio.low is not None and ratio.high is not None:
                assert ratio.low - 1e-9 <= x / y <= ratio.high + 1e-9
    if b.value == 0:
        assert ratio == QuantityValue(None)
    elif b.bounds[0] <= 0 <= b.bounds[1]:
        assert ratio.interval is None


def test_the_mean_of_one_seed_has_no_interval() -> None:
    assert mean_of_seeds({7: 2.0}).interval is None
    found = mean_of_seeds({1: 1.0, 2: 2.0, 3: 6.0})
    assert found.value == 3.0 and found.low is not None and found.high is not None
    assert math.isclose(found.high - 3.0, 4.302652729749 * np.std([1, 2, 6], ddof=1) / math.sqrt(3))


def test_a_claim_says_how_many_seeds_would_decide_it() -> None:
    """The mean 1 with a standard deviation of 1: Student's t gives 1.05 of six values, 0.92 of seven."""
    positive, near = Claim(says="so", positive="x"), Claim(says="so", between={"of": "x", "from": -1, "to": 1.5})
    assert seeds_to_decide(positive, [0.0, 1.0, 2.0]) == 7
    assert seeds_to_decide(Claim(says="so", negative="x"), [0.0, 1.0, 2.0]) == 7  # decided, though it does not hold
    assert seeds_to_decide(near, [0.0, 1.0, 2.0]) == 18  # 0.497 away from 1.5 with eighteen, 0.514 with seventeen
    assert seeds_to_decide(positive, [-1.0, 0.0, 1.0]) is None
    assert seeds_to_decide(positive, [5.0, 5.1, 5.2]) == 3


@pytest.mark.long
@given(VALUES)
def test_with_so_many_seeds_like_these_the_interval_is_on_one_side(values: list[float]) -> None:
    """Twice the values have their mean, and seeds that would decide are at most as many as were asked for."""
    assume(len(set(values)) > 1 and abs(sum(values)) > 1)
    claim = Claim(says="so", positive="x")
    needed = seeds_to_decide(claim, values)
    decided = verdict({"positive": "x"}, x=mean_of_seeds(dict(enumerate(values)))) is not Verdict.UNDECIDED
    assert decided == (needed == len(values))
