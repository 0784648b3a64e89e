"""Causal scores given a range of lengths, against sums over wildcards."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import cases, length_ranges, small_pcfgs
from reference_inference import all_strings, conditioned_prefix, joint, length_mass, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

Case = tuple[PCFG, list[list[str]]]
BRACKETS = PCFG.from_text("S -> S S 0.3 | a 0.7")


def possible(pcfg: PCFG, lengths: LengthRange) -> list[tuple[str, ...]]:
    """Every string of the range; the example is dropped where there is none."""
    strings = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]]
    found = [s for table in strings[lengths.low :] for s in table]
    assume(found)
    return found


@pytest.mark.long
@given(small_pcfgs(max_words=2), length_ranges(5))
def test_next_token_and_stop_sum_to_one_at_every_possible_prefix(pcfg: PCFG, lengths: LengthRange) -> None:
    prefixes = sorted({s[:k] for s in possible(pcfg, lengths) for k in range(len(s) + 1)})
    for prefix in prefixes[:40]:
        found = pcfg.next_token(prefix, lengths)
        assert found.probability.sum() + found.stop == pytest.approx(1.0, rel=1e-10), prefix
        if len(prefix) not in lengths:
            assert found.stop == 0.0
        if len(prefix) == lengths.high:
            assert found.stop == pytest.approx(1.0, rel=1e-10)


@pytest.mark.long
@given(cases(), length_ranges(6), st.integers(1, 5))
def test_prefix_probability_is_the_wildcard_sum(case: Case, lengths: LengthRange, size: int) -> None:
    pcfg, (sentence,) = case
    prefix = sentence[:size]
    rules = rules_of(pcfg)
    assume(sum(length_mass(rules, lengths.high)[lengths.low :]) > 0.0)
    wanted = conditioned_prefix(rules, prefix, lengths.low, lengths.high)
    assert math.exp(pcfg.prefix_log_prob(prefix, lengths)) == pytest.approx(wanted, rel=1e-10, abs=0.0)


@pytest.mark.long
@given(small_pcfgs(max_words=3), length_ranges(4), st.integers(0, 10**6))
def test_next_token_distribution_is_the_ratio_of_wildcard_sums(pcfg: PCFG, lengths: LengthRange, pick: int) -> None:
    rules = rules_of(pcfg)
    strings = possible(pcfg, lengths)
    whole = strings[pick % len(strings)]
    for k in range(len(whole) + 1):
        prefix = whole[:k]
        found = pcfg.next_token(prefix, lengths)
        before = conditioned_prefix(rules, prefix, lengths.low, lengths.high)
        wanted = [conditioned_prefix(rules, [*prefix, w], lengths.low, lengths.high) / before for w in found.words]
        np.testing.assert_allclose(found.probability, wanted, rtol=1e-10, atol=0.0)
        if k in lengths:
            z = sum(length_mass(rules, lengths.high)[lengths.low :])
            assert found.stop == pytest.approx(joint(rules, prefix) / z / before, rel=1e-10, abs=0.0)


@pytest.mark.long
@given(small_pcfgs(), length_ranges(4))
def test_conditioned_scores_of_a_sentence_sum_to_its_probability_over_z(pcfg: PCFG, lengths: LengthRange) -> None:
    """ln P(sentence | range) = ln inside - ln Z, exactly; zero outside the range."""
    rules = rules_of(pcfg)
    strings = all_strings(rules, 4)[rules.start]
    z = math.fsum(p for table in strings[lengths.low : lengths.high + 1] for p in table.values())
    asked = [s for m in range(1, 4) for s in itertools.product(pcfg.vocabulary, repeat=m)] + list(strings[4])
    if z == 0.0:
        with pytest.raises(InputError, match="no sentence of this grammar has a length in"):
            pcfg.exact.string_log_probs(asked, lengths)
        return
    assert pcfg.exact.range_mass(lengths) == pytest.approx(z, rel=1e-10)
    wanted = [strings[len(s)].get(s, 0.0) / z if len(s) in lengths else 0.0 for s in asked]
    found = np.exp(pcfg.exact.string_log_probs(asked, lengths))
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=0.0)
    by_token = [math.exp(row.sum()) for row in pcfg.exact.causal_log_probs(asked, lengths)]
    np.testing.assert_allclose(by_token, wanted, rtol=1e-10, atol=0.0)


@pytest.mark.long
@given(small_pcfgs(), length_ranges(4))
def test_the_length_pmf_is_renormalised_within_the_range(pcfg: PCFG, lengths: LengthRange) -> None:
    mass = np.array(length_mass(rules_of(pcfg), 6))
    inside = np.array([m in lengths for m in range(7)])
    assume((mass * inside).sum() > 0.0)
    wanted = mass * inside / (mass * inside).sum()
    np.testing.assert_allclose(pcfg.exact.length_pmf(6, lengths), wanted, rtol=1e-10, atol=0.0)
    np.testing.assert_allclose(pcfg.exact.length_pmf(2, lengths), wanted[:3], rtol=1e-10, atol=0.0)


@pytest.mark.long
@given(cases())
def test_a_range_that_holds_everything_changes_nothing(case: Case) -> None:
    """The wider the range, the nearer to the unconditioned scores; exact once no mass is left outside."""
    pcfg, (sentence,) = case
    wide = LengthRange(1, 60)
    left = 1.0 - pcfg.exact.range_mass(wide)
    free, conditioned = pcfg.exact.causal_log_probs([sentence])[0], pcfg.exact.causal_log_probs([sentence], wide)[0]
    possible = np.isfinite(free)
    assert (np.isfinite(conditioned) == possible).all()
    prefix = np.exp(np.cumsum(free[possible]))
    if possible.any():
        gap = np.abs(np.exp(np.cumsum(conditioned[possible])) - prefix)
        assert gap.max() <= 2.0 * abs(left) / (1.0 - abs(left)) + 1e-10


@pytest.mark.long
@given(cases(most=8), length_ranges(5))
def test_a_score_does_not_depend_on_the_rest_of_the_batch(case: Case, lengths: LengthRange) -> None:
    pcfg, batch = case
    assume(pcfg.exact.length_pmf(lengths.high)[lengths.low :].sum() > 0.0)
    together = pcfg.exact.causal_log_probs([*batch, *reversed(batch)], lengths)
    for i, sentence in enumerate(batch):
        alone = pcfg.exact.causal_log_probs([sentence], lengths)[0]
        np.testing.assert_allclose(together[i], alone, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(together[-1 - i], alone, rtol=1e-12, atol=1e-13)


def test_lengths_outside_the_range_are_impossible_and_never_nan() -> None:
    lengths = LengthRange(3, 4)
    for n in (1, 2, 5, 9):
        scores = BRACKETS.exact.causal_log_probs([["a"] * n], lengths)[0]
        assert not np.isnan(scores).any()
        assert scores[-1] == -np.inf
    assert BRACKETS.prefix_log_prob(["a"] * 4, lengths) > -math.inf
    assert BRACKETS.prefix_log_prob(["a"] * 5, lengths) == -math.inf
    with pytest.raises(InputError, match="no sentence starts with"):
        BRACKETS.next_token(["a"] * 5, lengths)


def test_the_empty_prefix_is_certain_given_a_range() -> None:
    leaking = PCFG.from_text("S -> S S 0.6 | a 0.4")
    lengths = LengthRange(2, 5)
    assert leaking.prefix_log_prob([], lengths) == 0.0
    first = leaking.next_token([], lengths)
    assert first.probability.sum() + first.stop == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("call", ["prefix_log_prob", "next_token"])
@pytest.mark.parametrize("prefix", [[], ["a"]])
def test_a_range_without_sentences_is_refused(call: str, prefix: list[str]) -> None:
    with pytest.raises(InputError, match=r"no sentence of this grammar has a length in 5\.\.6"):
        getattr(PCFG.from_text("S -> a 1.0"), call)(prefix, LengthRange(5, 6))


def test_a_range_of_vanishing_mass_is_refused_and_gives_no_infinity() -> None:
    grammar = PCFG.from_text("S -> S S 0.1 | a 0.9")
    scores = grammar.exact.causal_log_probs([["a"] * 300], LengthRange(300, 300))[0]
    np.testing.assert_allclose(scores, 0.0, atol=1e-10)
    with pytest.raises(InputError, match="too small"):
        grammar.exact.causal_log_probs([["a"] * 5], LengthRange(700, 700))


def test_long_conditioned_sentences_do_not_underflow() -> None:
    grammar = PCFG.from_text("S -> S S 0.3 | a 0.4 | b 0.3")
    lengths = LengthRange(60, 80)
    sentence = ["a", "b", "b"] * 25
    n = len(sentence)
    catalan = [math.lgamma(2 * m - 1) - math.lgamma(m) - math.lgamma(m + 1) for m in range(1, 81)]
    mass = [math.exp(catalan[m - 1] + (m - 1) * math.log(0.3) + m * math.log(0.7)) for m in range(60, 81)]
    wanted = catalan[n - 1] + (n - 1) * math.log(0.3) + 25 * math.log(0.4) + 50 * math.log(0.3)
    scores = grammar.exact.causal_log_probs([sentence], lengths)[0]
    assert scores.sum() == pytest.approx(wanted - math.log(math.fsum(mass)), rel=1e-10)


# -- the range itself -------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "wanted"), [("6..25", LengthRange(6, 25)), (" 1 .. 1 ", LengthRange(1, 1))])
def test_ranges_are_read_as_they_are_written(text: str, wanted: LengthRange) -> None:
    assert LengthRange.parse(text) == wanted
    assert LengthRange.parse(str(wanted)) == wanted


def test_none_is_no_condition() -> None:
    assert LengthRange.parse("None") is None


@pytest.mark.parametrize("text", ["", "6", "6-25", "25..6", "0..3", "a..b", "-1..3", "1..2..3"])
def test_bad_ranges_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="length range"):
        LengthRange.parse(text)


@pytest.mark.parametrize(("low", "high"), [(1.5, 2), (1, 2.0), (1, math.inf), (math.nan, 2)])
def test_the_ends_of_a_range_are_whole_numbers(low: Any, high: Any) -> None:
    with pytest.raises(InputError, match="length range needs integers"):
        LengthRange(low, high)


def test_both_ends_belong_to_the_range_for_any_kind_of_integer() -> None:
    lengths = LengthRange(2, 4)
    assert [m for m in range(7) if m in lengths] == [2, 3, 4]
    assert np.int64(3) in lengths
    assert np.int64(5) not in lengths
    assert "3" not in lengths
