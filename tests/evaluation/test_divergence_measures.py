"""Measures of two distributions, against plain loops and their known properties."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.evaluation.divergence.contexts import NAMES, Reliability, measure_rows
from truesource.evaluation.divergence.means import Column, mean_scores

Pair = tuple[list[float], list[float]]


def logs(rows: Sequence[Sequence[float]]) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array(rows))


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """P sums to one; Q may lose some mass; both may have zeros."""
    size = draw(st.integers(1, 7))
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    p, q = (np.array(draw(weights), dtype=np.float64) for _ in range(2))
    lost = draw(st.sampled_from([0.0, 0.25, 0.01]))
    return (p / p.sum()).tolist(), (q / q.sum() * (1.0 - lost)).tolist()


def kl(p: Sequence[float], q: Sequence[float]) -> float:
    terms = [math.inf if y == 0.0 else x * math.log(x / y) for x, y in zip(p, q, strict=True) if x > 0.0]
    return math.inf if math.inf in terms else math.fsum(terms)


def entropy(p: Sequence[float]) -> float:
    return -math.fsum(x * math.log(x) for x in p if x > 0.0)


def best(p: Sequence[float], k: int) -> set[int]:
    """What has no probability is never among the most probable."""
    return {i for i in sorted(range(len(p)), key=lambda i: (-p[i], i))[:k] if p[i] > 0.0}


def highest(p: Sequence[float]) -> set[int]:
    return {i for i, x in enumerate(p) if math.isclose(x, max(p), rel_tol=1e-9)}


def most_in_common(p: Sequence[float], q: Sequence[float], few: int) -> int:
    """Over every set that is one of the ``few`` most probable of P."""
    possible = [i for i, x in enumerate(p) if x > 0.0]
    mass = max(math.fsum(p[i] for i in chosen) for chosen in itertools.combinations(possible, few))
    sets = [s for s in itertools.combinations(possible, few) if math.isclose(math.fsum(p[i] for i in s), mass)]
    return max(len(best(q, few) & set(chosen)) for chosen in sets)


def slow(p: list[float], q: list[float], k: int) -> dict[str, float]:
    mass = math.fsum(q)
    sampled = [y / mass for y in q]
    allowed = [y for x, y in zip(p, q, strict=True) if x > 0.0]
    within = math.fsum(allowed)
    rest = max(0.0, 1.0 - mass)
    wide_p, wide_q = [*p, 0.0], [*q, rest]
    middle = [(x + y) / 2 for x, y in zip(wide_p, wide_q, strict=True)]
    few = min(k, len(allowed))
    (first,) = best(q, 1)
    return {
        "kl": kl(p, q),
        "reverse_kl": kl(sampled, p),
        "reverse_kl_possible": kl([y / within for y in allowed], [x for x in p if x > 0.0]) if within else math.inf,
        "js": 0.5 * kl(wide_p, middle) + 0.5 * kl(wide_q, middle),
        "tv": 0.5 * math.fsum(abs(x - y) for x, y in zip(wide_p, wide_q, strict=True)),
        "entropy_truth": entropy(p),
        "entropy_model": entropy(sampled),
        "agreement": len(highest(p) & highest(q)) / len(highest(q)),
        "top_k_overlap": most_in_common(p, q, few) / few,
        "special_mass": rest,
        "impossible_mass": mass - within,
        "confidence": q[first],
        "confidence_truth": p[first],
    }


@given(pairs(), st.integers(1, 9))
def test_measures_are_those_of_plain_loops(pair: Pair, k: int) -> None:
    p, q = pair
    found = measure_rows(logs([p, q]), logs([q, q]), top=k).values[0]
    for name, value in slow(p, q, k).items():
        assert found[NAMES.index(name)] == pytest.approx(value, rel=1e-10, abs=1e-12), name


@pytest.mark.long
@given(pairs(), st.integers(1, 9))
def test_a_distribution_against_itself_differs_in_nothing(pair: Pair, k: int) -> None:
    _, q = pair
    row = dict(zip(NAMES, measure_rows(logs([q]), logs([q]), top=k).values[0].tolist(), strict=True))
    for name in ("kl", "reverse_kl", "js", "tv", "impossible_mass"):
        assert row[name] == 0.0
    assert row["reverse_kl_possible"] == 0.0
    assert (row["agreement"], row["top_k_overlap"]) == (1.0, 1.0)
    assert row["confidence"] == row["confidence_truth"]


@pytest.mark.parametrize("noise", [0.0, 1e-13, 1e-6, 1e-2])
def test_any_of_the_tied_will_do(noise: float) -> None:
    """A model that is the truth but for noise has the truth's best; ties of the truth are no disagreement."""
    truth = np.repeat(logs([[0.3, 0.3, 0.1, 0.1, 0.1, 0.1]]), 500, axis=0)
    rng = np.random.default_rng(1)
    model = truth + rng.normal(0.0, noise, truth.shape)
    found = measure_rows(
        truth + rng.normal(0.0, 1e-13, truth.shape), model - np.log(np.exp(model).sum(1))[:, None], top=3
    )
    for name in ("agreement", "top_k_overlap"):
        assert (found.values[:, NAMES.index(name)] == 1.0).all(), name


@pytest.mark.parametrize(
    ("p", "q", "wanted"),
    [
        ([0.5, 0.3, 0.2], [0.4, 0.4, 0.2], 0.5),  # the model ties the right one with another
        ([0.5, 0.3, 0.2], [1 / 3, 1 / 3, 1 / 3], 1 / 3),  # a uniform model chooses as chance does
        ([0.4, 0.4, 0.2], [0.4, 0.2, 0.4], 0.5),
        ([0.4, 0.4, 0.2], [0.2, 0.7, 0.1], 1.0),
        ([0.4, 0.4, 0.2], [0.2, 0.1, 0.7], 0.0),
        ([0.5, 0.5 - 1e-6, 1e-6], [0.4, 0.6, 0.0], 0.0),  # no tie
    ],
)
def test_ties_of_either_side(p: list[float], q: list[float], wanted: float) -> None:
    assert measure_rows(logs([p]), logs([q])).values[0, NAMES.index("agreement")] == pytest.approx(wanted)


@given(pairs())
def test_bounds_and_inequalities(pair: Pair) -> None:
    """JS <= ln 2, TV <= 1, Pinsker: KL >= 2 TV^2; all that can be are 0 or more."""
    p, q = pair
    row = dict(zip(NAMES, measure_rows(logs([p]), logs([q])).values[0].tolist(), strict=True))
    assert -1e-12 <= row["js"] <= math.log(2) + 1e-12
    assert row["tv"] <= 1.0 + 1e-12
    assert row["kl"] >= 2 * row["tv"] ** 2 - 1e-12
    assert row["js"] <= row["tv"] * math.log(2) + 1e-12  # Lin (1991)
    assert row["reverse_kl_possible"] >= -1e-12


def test_a_zero_of_the_model_is_infinite_and_not_nan() -> None:
    """Also where P is so small that exp of it is 0."""
    found = measure_rows(np.array([[0.0, -800.0]]), np.array([[0.0, -np.inf]])).values[0]
    assert found[NAMES.index("kl")] == math.inf
    assert not np.isnan(found).any()
    nothing = measure_rows(logs([[0.5, 0.5]]), logs([[0.0, 0.0]])).values[0]
    assert np.flatnonzero(np.isnan(nothing)).tolist() == [NAMES.index("entropy_model")]
    assert nothing[NAMES.index("tv")] == 1.0
    assert nothing[NAMES.index("js")] == pytest.approx(math.log(2))


@pytest.mark.long
@given(st.lists(pairs(), min_size=1, max_size=4), st.lists(st.integers(0, 2), min_size=7, max_size=7))
def test_groups_divide_the_divergence(cases: list[Pair], labels: list[int]) -> None:
    for p, q in cases:
        groups = np.array(labels[: len(p)])
        rows = measure_rows(logs([p]), logs([q]), groups=groups)
        for g in range(int(groups.max()) + 1):
            inside = [i for i in range(len(p)) if groups[i] == g]
            assert rows.share[0, g] == pytest.approx(math.fsum(p[i] for i in inside), abs=1e-12)
            wanted = kl([p[i] for i in inside], [q[i] for i in inside])
            assert rows.grouped[0, g] == pytest.approx(wanted, rel=1e-10, abs=1e-12)


# -- calibration ------------------------------------------------------------------------------------


@pytest.mark.long
@given(st.lists(st.tuples(pairs(), st.integers(1, 3)), min_size=1, max_size=5))
def test_the_histograms_hold_every_event_once(cases: list[tuple[Pair, int]]) -> None:
    made = Reliability()
    for (p, q), times in cases:
        measure_rows(logs([p]), logs([q]), weight=np.array([float(times)]), reliability=made)
    events: dict[int, list[tuple[float, float, int]]] = {}
    for (p, q), times in cases:
        for x, y in zip(p, q, strict=True):
            at = 0 if y == 0.0 or math.log(y) <= made.low else min(int((math.log(y) - made.low) / made.step), 95)
            events.setdefault(at, []).append((x, y, times))
    contexts = sum(times for _, times in cases)
    for at, inside in events.items():
        wanted = [sum(n for *_, n in inside), sum(y * n for _, y, n in inside), sum(x * n for x, _, n in inside)]
        assert made.bins[at] == pytest.approx(wanted, abs=1e-12)
    assert made.contexts == contexts
    gaps = [abs(sum((x - y) * n for x, y, n in inside)) for inside in events.values()]
    assert made.error == pytest.approx(0.5 * sum(gaps) / contexts, abs=1e-12)
    q_mean, p_mean, number = made.curve()
    assert number.sum() == sum(len(p) * times for (p, _), times in cases)
    assert float(p_mean @ number) == pytest.approx(contexts, rel=1e-12)
    assert (q_mean <= 1.0 + 1e-12).all()


def test_the_top_error_is_that_of_guo_with_true_probabilities() -> None:
    """Confidence 0.65 twice (one bin of fifteen), true 0.5 and 0.6; confidence 0.9 once, true 1."""
    made = Reliability()
    model = [[0.65, 0.35], [0.35, 0.65], [0.9, 0.1]]
    truth = [[0.5, 0.5], [0.4, 0.6], [1.0, 0.0]]
    measure_rows(logs(truth), logs(model), reliability=made)
    assert made.top_error == pytest.approx((abs(1.3 - 1.1) + abs(0.9 - 1.0)) / 3)


def test_bad_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="two \\(W, E\\) arrays"):
        measure_rows(np.zeros((1, 2)), np.zeros((1, 3)))
    with pytest.raises(ValueError, match="top >= 1"):
        measure_rows(np.zeros((1, 1)), np.zeros((1, 1)), top=0)


def test_a_model_that_expects_nothing_has_no_entropy() -> None:
    """Its mean is over the other contexts, and says so."""
    truth = np.log(np.full((2, 2), 0.5))
    model = np.array([[np.log(0.5)] * 2, [-np.inf] * 2])
    values = measure_rows(truth, model).values
    entropy = values[:, NAMES.index("entropy_model")]
    assert entropy[0] == pytest.approx(np.log(2.0)) and np.isnan(entropy[1])
    found = mean_scores({"entropy_model": Column(entropy, {})}, np.array([0, 1]), {}, 1)["entropy_model"]
    assert found.value == pytest.approx(np.log(2.0))
    assert "contexts:1/2" in found.signature
    columns = {"entropy_model": Column(entropy[1:], {}), "tv": Column(entropy[:1], {})}
    assert mean_scores(columns, np.array([0]), {}, 1).keys() == {"tv"}
