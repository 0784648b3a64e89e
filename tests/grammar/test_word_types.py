"""Occurrence of words and expected numbers of types against enumeration and iteration."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, length_mass, rules_of, total_mass

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference import word_types
from truesource.grammar.inference.word_types import (
    expected_types,
    occurrence_bounds,
    occurrence_by_length,
    occurrence_probabilities,
    types_per_length,
)
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

pytestmark = pytest.mark.long

LEAKING = PCFG.from_text("S -> S S 0.6 | A 0.1 | a 0.3\nA -> S 0.5 | b 0.5\nTRAP -> TRAP S 1.0")


def strings_of(pcfg: PCFG, lengths: LengthRange) -> dict[tuple[str, ...], float]:
    """P(string | range) by enumeration; the example is dropped where there is none."""
    tables = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]][lengths.low :]
    z = math.fsum(p for table in tables for p in table.values())
    if z == 0.0:
        assume(False)
    return {s: p / z for table in tables for s, p in table.items()}


def without(pcfg: PCFG, word: str) -> float:
    """Total mass once the word is removed, by iteration."""
    rules = rules_of(pcfg)
    mass: float = total_mass(replace(rules, lexical=tuple(r for r in rules.lexical if r[1] != word)))[rules.start]
    return mass


@given(small_pcfgs(), length_ranges(4))
def test_occurrence_given_a_range_is_that_of_all_strings(pcfg: PCFG, lengths: LengthRange) -> None:
    strings = strings_of(pcfg, lengths)
    wanted = [math.fsum(p for s, p in strings.items() if w in s) for w in pcfg.vocabulary]
    np.testing.assert_allclose(occurrence_probabilities(pcfg, lengths), wanted, rtol=1e-10, atol=0.0)
    pairs = [math.fsum(p * math.comb(s.count(w), 2) for s, p in strings.items()) for w in pcfg.vocabulary]
    once = [math.fsum(p * s.count(w) for s, p in strings.items()) for w in pcfg.vocabulary]
    bounds = occurrence_bounds(pcfg, lengths)
    lower = np.maximum(np.array(once) - pairs, 0.0)
    np.testing.assert_allclose(bounds.lower, lower, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(bounds.upper, np.minimum(once, 1.0), rtol=1e-10, atol=0.0)


@given(small_pcfgs())
def test_unconditioned_occurrence_is_what_removing_the_word_takes(pcfg: PCFG) -> None:
    wanted = [1.0 - without(pcfg, w) / total_mass(rules_of(pcfg))[pcfg.symbols[pcfg.start]] for w in pcfg.vocabulary]
    found = occurrence_probabilities(pcfg)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    bounds = occurrence_bounds(pcfg)
    assert (bounds.lower <= found * (1 + 1e-12) + 1e-15).all()
    assert (found <= bounds.upper * (1 + 1e-12) + 1e-15).all()


def test_a_grammar_that_leaks_is_conditioned_on_derivations_that_end() -> None:
    t = total_mass(rules_of(LEAKING))["S"]
    wanted = [1.0 - without(LEAKING, w) / t for w in LEAKING.vocabulary]
    np.testing.assert_allclose(occurrence_probabilities(LEAKING), wanted, rtol=1e-10)
    with pytest.raises(InputError, match="no derivation"):
        occurrence_probabilities(PCFG.from_text("S -> S S 1.0\nA -> a 1.0"))
    with pytest.raises(InputError, match=r"spectral radius is 1: .*condition on a range"):
        occurrence_probabilities(PCFG.from_text("S -> S S 0.5 | a 0.5"))


def test_rare_words_keep_their_precision_and_frequent_ones_settle() -> None:
    """S -> S S p | a q | b r without b: the smaller root of t = q + p t^2."""
    rare = 1e-13
    for p, r in [(0.45, rare), (0.3, rare), (0.45, 0.5), (0.4999, 0.5), (0.4999, 1e-5)]:
        pcfg = PCFG.from_text(f"S -> S S {p!r} | a {1 - p - r!r} | b {r!r}")
        # d of the smaller root from 1, without subtraction: p d^2 + (1 - 2p) d - r = 0
        wanted = 2 * r / ((1 - 2 * p) + math.sqrt((1 - 2 * p) ** 2 + 4 * p * r))
        assert occurrence_probabilities(pcfg, words=["b"])[0] == pytest.approx(wanted, rel=2e-9)
    pcfg = PCFG.from_text("S -> A A 0.5 | a 0.5\nA -> a 0.9999999999999 | b 1e-13")
    assert occurrence_probabilities(pcfg, words=["b"])[0] == pytest.approx(1e-13, rel=1e-9)
    assert occurrence_probabilities(pcfg, LengthRange(2, 2), ["b"])[0] == pytest.approx(2e-13, rel=1e-9)


@given(small_pcfgs(max_words=3), length_ranges(3))
def test_expected_types_are_those_of_all_samples(pcfg: PCFG, lengths: LengthRange) -> None:
    strings = strings_of(pcfg, lengths)
    assume(len(strings) <= 60)
    q = occurrence_probabilities(pcfg, lengths)
    wanted = [0.0, math.fsum(p * len(set(s)) for s, p in strings.items())]
    pairs = itertools.product(strings.items(), repeat=2)
    wanted.append(math.fsum(p * q * len({*s, *t}) for (s, p), (t, q) in pairs))
    np.testing.assert_allclose(expected_types(q, [0, 1, 2]), wanted, rtol=1e-10, atol=1e-14)
    assert expected_types(q, [10**9])[0] == pytest.approx((q > 0).sum(), abs=1e-3)


@given(small_pcfgs())
def test_types_per_length_are_those_of_all_strings_of_the_length(pcfg: PCFG) -> None:
    rules = rules_of(pcfg)
    tables = all_strings(rules, 4)[rules.start]
    mass = length_mass(rules, 4)
    found, joint = types_per_length(pcfg, 4), occurrence_by_length(pcfg, 4, [*pcfg.vocabulary, "nothing"])
    for m, table in enumerate(tables):
        types = math.fsum(p * len(set(s)) for s, p in table.items())
        assert found[m] == pytest.approx(types / mass[m] if mass[m] > 0.0 else 0.0, rel=1e-10)
        for i, word in enumerate([*pcfg.vocabulary, "nothing"]):
            assert joint[i, m] == pytest.approx(math.fsum(p for s, p in table.items() if word in s), rel=1e-10)


@pytest.mark.parametrize("lengths", [None, LengthRange(2, 6)], ids=str)
def test_batches_words_asked_for_and_tolerance_change_little_or_nothing(
    lengths: LengthRange | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = " | ".join(f"w{i} {(i + 1) * 2e-4!r}" for i in range(60))
    rest = 1 - 60 * 61 / 2 * 2e-4
    pcfg = PCFG.from_text(f"S -> S A 0.3 | A 0.7\nA -> {words} | the {rest!r}")
    whole = occurrence_probabilities(pcfg, lengths)
    monkeypatch.setattr(word_types, "WIDTH", 7)
    monkeypatch.setattr(word_types, "POOL", 7)
    np.testing.assert_allclose(occurrence_probabilities(pcfg, lengths), whole, rtol=1e-12)
    asked = ["w3", "unheard", "the", "w59"]
    wanted = [0.0 if w == "unheard" else whole[pcfg.word_ids[w]] for w in asked]
    np.testing.assert_allclose(occurrence_probabilities(pcfg, lengths, asked), wanted, rtol=1e-12)
    near = occurrence_probabilities(pcfg, lengths, tolerance=3e-3)
    assert 0.0 < np.abs(near / whole - 1.0).max() <= 1.5e-3
    assert near[pcfg.word_ids["the"]] == pytest.approx(whole[pcfg.word_ids["the"]], rel=1e-12)


def test_bad_requests_are_refused() -> None:
    with pytest.raises(InputError, match="no sentence of this grammar has a length in"):
        occurrence_probabilities(PCFG.from_text("S -> a 1.0"), LengthRange(3, 4))
    with pytest.raises(InputError, match="cannot be negative"):
        expected_types(np.array([0.5]), [-1])
