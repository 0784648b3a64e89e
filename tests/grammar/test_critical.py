"""Masses of grammars at and near the critical point, where plain equations lose half of the digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.grammar.diagnostics import diagnose
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.rewards import Count, Pattern, Words
from truesource.grammar.tilting.tilt import Tilting, power, tilt

CRITICAL = PCFG.from_text("S -> S S 0.5 | a 0.25 | b 0.25")


@st.composite
def nearly_critical(draw: st.DrawFn) -> PCFG:
    """Grammars whose symbols all have binary rules of probability 1/2, or a little less: the radius is twice that."""
    n, below = draw(st.integers(1, 3)), draw(st.sampled_from([0.0, 1e-13, 1e-10, 1e-8, 1e-6, 1e-4]))
    half = 0.5 * (1.0 - below)
    names = "SAB"[:n]
    lines = []
    for i, name in enumerate(names):
        after = names[(i + 1) % n]
        pairs = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=2, unique=True))
        pairs = list(dict.fromkeys([(after, after), *pairs]))
        weights = draw(st.lists(st.integers(1, 9), min_size=len(pairs), max_size=len(pairs)))
        words = draw(st.lists(st.integers(1, 9), min_size=3, max_size=3))
        lines += [f"{name} -> {b} {c} {half * w / sum(weights)!r}" for (b, c), w in zip(pairs, weights, strict=True)]
        lines += [f"{name} -> {v} {(1.0 - half) * w / sum(words)!r}" for v, w in zip("abc", words, strict=True)]
    return PCFG.from_text("\n".join(lines))


def fixed_point(pcfg: PCFG, weight: dict[str, float]) -> float:
    """The solution of x = lexical * weight + Bi(x, x) for the start, far from a critical one: iteration settles."""
    factor = np.array([weight.get(word, 1.0) for word in pcfg.vocabulary])
    lexical = np.bincount(pcfg.lexical[:, 0], np.exp(pcfg.lexical_logp) * factor[pcfg.lexical[:, 1]])
    x: FloatArray = np.zeros(len(pcfg.symbols))
    a, b, c = pcfg.binary.T
    for _ in range(300):
        x = lexical + np.bincount(a, np.exp(pcfg.binary_logp) * x[b] * x[c], len(x))
    return float(x[pcfg.start])


@pytest.mark.long
@given(nearly_critical())
def test_events_of_nearly_critical_grammars_have_all_their_digits(pcfg: PCFG) -> None:
    assert pcfg.exact.total_mass == pytest.approx(1.0, abs=1e-11)
    none = fixed_point(pcfg, {"a": 0.0})  # P(no a)
    even = (1.0 + fixed_point(pcfg, dict.fromkeys(pcfg.vocabulary, -1.0))) / 2.0  # P(an even number of words)
    for event, p in ((Count(("a",), 1, None), 1.0 - none), (Pattern("(. .)*"), even)):
        for holds, share in ((True, p), (False, 1.0 - p)):
            given_event = Tilting(pcfg, event).given(holds=holds)
            assert given_event.log_z == pytest.approx(math.log(share), abs=1e-10)
            assert given_event.pcfg.exact.total_mass == pytest.approx(1.0, abs=1e-10)


@pytest.mark.long
def test_an_event_of_a_critical_grammar() -> None:
    """P(no a) = x with x = x^2 / 2 + 1/4."""
    none = 1.0 - math.sqrt(0.5)
    tilting = Tilting(CRITICAL, Count(("a",), 1, None))
    assert CRITICAL.exact.total_mass == 1.0
    assert tilting.given().log_z == pytest.approx(math.log1p(-none), abs=1e-14)
    assert tilting.event_probability() == pytest.approx(math.sqrt(0.5), abs=1e-14)
    assert tilting.at(2.0).log_z == pytest.approx(math.log(none + (1.0 - none) * math.exp(0.5)), abs=1e-14)
    half = tilting.with_probability(0.5)
    assert tilt(half.pcfg, tilting.reward).log_z == pytest.approx(math.log(0.5), abs=1e-10)
    assert power(CRITICAL, 1.0).log_z == 0.0


@pytest.mark.parametrize("below", [1e-12, 1e-10, 1e-8, 1e-7])
def test_an_event_of_a_spectral_radius_just_below_one_is_no_infinite_sum(below: float) -> None:
    """P(no a) = x with x = p x^2 + (1 - p) / 2."""
    p = 0.5 * (1.0 - below)
    pcfg = PCFG.from_text(f"S -> S S {p!r} | a {(1.0 - p) / 2.0!r} | b {(1.0 - p) / 2.0!r}")
    assert pcfg.exact.spectral_radius == pytest.approx(1.0 - below, abs=1e-15)
    none = (1.0 - math.sqrt(1.0 - 2.0 * p * (1.0 - p))) / (2.0 * p)
    for event, holds in (
        (Count(("a",), 1, None), True),
        (Pattern("[^b]* | .* b .*"), True),
        (Count(("a",), 0, 0), False),
    ):
        share = 1.0 if isinstance(event, Pattern) else 1.0 - none
        assert Tilting(pcfg, event).given(holds=holds).log_z == pytest.approx(math.log(share), abs=1e-13)


@pytest.mark.parametrize("above", [1e-13, 1e-10, 1e-8, 1e-6, 1e-4, 0.1])
def test_what_leaks_just_above_the_critical_point_has_all_its_digits(above: float) -> None:
    """The least solution of t = p t^2 + 1 - p is (1 - p) / p."""
    p = 0.5 * (1.0 + above)
    plain = PCFG.from_text(f"S -> S S {p!r} | a {1.0 - p!r}")
    chained = PCFG.from_text(f"S -> T U {p!r} | a {1.0 - p!r}\nT -> S 1.0\nU -> T 0.5 | S 0.5\nLOST -> LOST S 1.0")
    for pcfg in (plain, chained):
        assert pcfg.exact.total_mass == pytest.approx((1.0 - p) / p, abs=1e-12)
    assert chained.exact.mass[chained.symbols.index("LOST")] == 0.0


def test_a_reward_at_the_edge_of_an_infinite_sum() -> None:
    """Z solves z = 0.3 z^2 + 0.7 exp(s): it is infinite above s = -ln 0.84."""
    tilting, edge = Tilting(PCFG.from_text("S -> S S 0.3 | a 0.7"), Words({"a": 1.0})), -math.log(0.84)
    for below in (0.1, 1e-3, 1e-6, 1e-9):
        s = edge - below
        exact = math.log((1.0 - math.sqrt(-math.expm1(-below))) / 0.6)
        assert tilting.at(1.0 / s).log_z == pytest.approx(exact, abs=1e-10)
    for s, reason in (
        (edge - 1e-13, "so close to being infinite"),
        (edge + 1e-3, "is infinite, or too large for float64"),
    ):
        with pytest.raises(InputError, match=reason) as refused:
            tilting.at(1.0 / s)
        assert refused.value.code == "infinite-sum"


def test_expected_counts_at_the_critical_point_are_refused_with_the_reason() -> None:
    p = 0.5 * (1.0 - 1e-11)
    pcfg = PCFG.from_text(f"S -> S S {p!r} | a {1.0 - p!r}")
    with pytest.raises(InputError, match="expected counts are imprecise"):
        expected_counts(pcfg)
    found = diagnose(pcfg)
    assert found.mean_length is None and found.derivational_entropy is None and found.total_mass == 1.0
