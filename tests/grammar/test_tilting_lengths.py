"""Tilts given a range of lengths whose sum over all lengths is infinite or beyond float64, against enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, rules_of

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.log_masses import log_length_masses
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.rewards import Count, Sum, Words
from truesource.grammar.tilting.tilt import Tilting, power

CHAIN = PCFG.from_text("S -> a S 0.5 | b 0.5")
ENGLISH = PCFG.from_text(
    "S -> NP VP 1.0\nNP -> DT N 0.5 | NP PP 0.2 | we 0.3\nPP -> of NP 1.0\nVP -> V NP 0.7 | V 0.1 | V S 0.2\n"
    "DT -> the 0.7 | a 0.3\nN -> dog 0.6 | tree 0.4\nV -> sees 0.5 | knows 0.5"
)


def strings_of(pcfg: PCFG, lengths: LengthRange) -> dict[tuple[str, ...], float]:
    tables = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]][lengths.low :]
    return {s: p for table in tables for s, p in table.items()}


@pytest.mark.long
@given(small_pcfgs(), st.lists(st.floats(-3.0, 8.0), min_size=4, max_size=4), st.integers(0, 2), length_ranges(5))
def test_tilts_given_lengths_are_those_of_all_strings_of_the_range(pcfg, rewards, least, lengths) -> None:
    strings = strings_of(pcfg, lengths)
    assume(strings)
    words = Words(dict(zip(pcfg.vocabulary, rewards, strict=False)))
    reward = Sum((words, Count((pcfg.vocabulary[0],), least, least + 1)))
    earned = dict(zip(strings, reward(pcfg, list(strings)).tolist(), strict=True))
    tilted = Tilting(pcfg, reward).at(0.7, lengths)
    weight = {s: p * math.exp(earned[s] / 0.7) for s, p in strings.items()}
    z, before = math.fsum(weight.values()), math.fsum(strings.values())
    logs = tilted.pcfg.exact.string_log_probs(list(strings), lengths)
    np.testing.assert_allclose(logs, [math.log(w / z) for w in weight.values()], atol=1e-10)
    mean = math.fsum(w / z * earned[s] for s, w in weight.items())
    kl = math.fsum(w / z * math.log(w / z / (strings[s] / before)) for s, w in weight.items())
    assert tilted.log_partition(lengths) == pytest.approx(math.log(z / before), abs=1e-10)
    assert tilted.expected_reward(lengths) == pytest.approx(mean, abs=1e-10)
    assert tilted.kl(lengths) == pytest.approx(kl, abs=1e-10)
    prefixes = sorted({s[:1] for s in strings})
    for prefix, twist in zip(prefixes, tilted.log_twists(prefixes, lengths).tolist(), strict=True):
        above = math.fsum(w for s, w in weight.items() if s[:1] == prefix)
        below = math.fsum(p for s, p in strings.items() if s[:1] == prefix)
        assert twist == pytest.approx(math.log(above / below), abs=1e-9)
    if tilted.lengths is not None:
        assert tilted.pcfg.exact.total_mass == pytest.approx(1.0, abs=1e-10)
        assert tilted.description["lengths"] == str(lengths)
        middle = LengthRange(lengths.low, max(lengths.low, lengths.high - 1))  # of the range, not all of it
        if any(len(s) in middle for s in strings):
            part = math.fsum(w for s, w in weight.items() if len(s) in middle)
            share = math.fsum(p for s, p in strings.items() if len(s) in middle)
            assert tilted.log_partition(middle) == pytest.approx(math.log(part / share), abs=1e-10)


@pytest.mark.long
@given(small_pcfgs(), length_ranges(5))
def test_masses_as_logarithms_are_those_of_all_lengths(pcfg: PCFG, lengths: LengthRange) -> None:
    logs = log_length_masses(
        lengths.high,
        pcfg.exact.log_lexical_sums,
        pcfg.binary,
        pcfg.binary_logp,
        pcfg.unary,
        pcfg.unary_logp,
    )
    assert logs is not None
    np.testing.assert_allclose(np.exp(logs), pcfg.exact.length_masses(lengths.high), rtol=1e-10, atol=0.0)


def test_a_chain_whose_reward_is_infinite_without_lengths() -> None:
    tilting, lengths = Tilting(CHAIN, Words({"a": math.log(4.0)})), LengthRange(1, 3)
    with pytest.raises(InputError, match=r"is infinite, .* or a range of lengths") as refused:
        tilting.at(1.0)
    assert refused.value.code == "infinite-sum"
    tilted = tilting.at(1.0, lengths)
    weights = [0.5, 0.25 * 4.0, 0.125 * 16.0]
    assert tilted.log_z == pytest.approx(math.log(sum(weights)), abs=1e-14)
    assert tilted.log_partition(lengths) == pytest.approx(math.log(sum(weights) / 0.875), abs=1e-14)
    assert tilted.log_partition(LengthRange(1, 9)) == pytest.approx(math.log(sum(weights) / (1 - 2.0**-9)), abs=1e-14)
    assert tilted.expected_reward(lengths) == pytest.approx(math.log(4.0) * (1.0 + 2 * 2.0) / 3.5, abs=1e-14)
    sampler = Sampler(tilted.pcfg, lengths)
    drawn = sampler.sentences(sampler.draw(2000, random_state(1, 0, 0)))
    shares = np.bincount([len(s) for s in drawn], minlength=4)[1:] / 2000
    np.testing.assert_allclose(shares, np.array(weights) / sum(weights), atol=0.04)


@pytest.mark.long
def test_a_grammar_like_english_given_lengths() -> None:
    tilting, lengths = Tilting(ENGLISH, Words({"the": 0.7})), LengthRange(2, 7)
    with pytest.raises(InputError, match="infinite"):
        Tilting(ENGLISH, Words({"the": 1.5})).at(1.0)
    for value in (0.7, 1.5):
        tilted = Tilting(ENGLISH, Words({"the": value})).at(1.0, lengths)
        strings = strings_of(ENGLISH, lengths)
        weight = {s: p * math.exp(value * s.count("the")) for s, p in strings.items()}
        z, before = math.fsum(weight.values()), math.fsum(strings.values())
        kl = math.fsum(w / z * math.log(w / z / (strings[s] / before)) for s, w in weight.items())
        assert tilted.log_partition(lengths) == pytest.approx(math.log(z / before), abs=1e-12)
        assert tilted.kl(lengths) == pytest.approx(kl, abs=1e-12)
    frontier = tilting.frontier(lengths, points=21)
    assert len(frontier) == 21, "given lengths it does not end where the sum over all lengths is infinite"
    assert all(a.kl < b.kl and a.reward < b.reward for a, b in itertools.pairwise(frontier))


@pytest.mark.long
def test_weights_beyond_float64_given_lengths() -> None:
    """ln Z of sentences a^(n-1) b that earn r for each a: the sum over n of n ln 0.5 + (n - 1) r."""
    for reward, lengths in ((50.0, LengthRange(1, 40)), (-50.0, LengthRange(40, 45))):
        tilted = Tilting(CHAIN, Words({"a": reward})).at(1.0, lengths)
        logs = np.array([n * math.log(0.5) + (n - 1) * reward for n in range(lengths.low, lengths.high + 1)])
        assert tilted.log_z == pytest.approx(np.logaddexp.reduce(logs), rel=1e-12)
        log_share = logs - np.logaddexp.reduce(logs)
        before = np.array([n * math.log(0.5) for n in range(lengths.low, lengths.high + 1)])
        before -= np.logaddexp.reduce(before)
        assert tilted.kl(lengths) == pytest.approx(float(np.exp(log_share) @ (log_share - before)), abs=1e-8)


@pytest.mark.parametrize("exponent", [0.2, 0.5, 3.0])
def test_a_power_given_lengths_is_that_of_derivations(exponent: float) -> None:
    """A chain S -> T -> S has weight (0.2 * 0.4)^exponent each time round."""
    grammar, lengths = PCFG.from_text("S -> S S 0.4 | T 0.2 | a 0.4\nT -> b 0.6 | S 0.4"), LengthRange(2, 3)
    tilted = power(grammar, exponent, lengths)
    chains = 1.0 / (1.0 - (0.2 * 0.4) ** exponent)
    word, pair = {"a": 0.4**exponent * chains, "b": (0.2 * 0.6) ** exponent * chains}, 0.4**exponent * chains
    expected = {  # trees of two and three words have one shape and two
        s: math.prod(word[w] for w in s) * pair ** (len(s) - 1) * (len(s) - 1) for s in strings_of(grammar, lengths)
    }
    z = math.fsum(expected.values())
    logs = tilted.pcfg.exact.string_log_probs(list(expected), lengths)
    np.testing.assert_allclose(logs, [math.log(w / z) for w in expected.values()], atol=1e-10)
    assert (tilted.lengths is None) == (exponent == 3.0)
    assert tilted.lengths is None or tilted.log_z == pytest.approx(math.log(z), abs=1e-10)


def test_what_is_refused_given_lengths() -> None:
    loops = PCFG.from_text("S -> T 0.3 | U 0.3 | a 0.4\nT -> S 0.5 | b 0.5\nU -> S 0.5 | c 0.5")
    with pytest.raises(InputError, match=r"infinite also for sentences of 1\.\.3 words, by unary rules"):
        power(loops, 0.01, LengthRange(1, 3))  # two ways from S to itself weigh more than 1 together
    with pytest.raises(InputError, match=r"no sentence of this grammar has a length in 2\.\.2"):
        Tilting(PCFG.from_text("S -> a S T 0.5 | b 0.5\nT -> b 1.0"), Words({"a": 9.0})).at(1.0, LengthRange(2, 2))
    with pytest.raises(InputError, match=r"lengths 1\.\.40 alone has [\d,]+ rules") as refused:
        Tilting(CHAIN, Words({"a": 9.0}), budget=60).at(1.0, LengthRange(1, 40))
    assert refused.value.code == "too-many-rules"


@pytest.mark.long
def test_an_event_of_a_range_of_lengths_too_rare_for_float64() -> None:
    """a^38 c d has ln p = 39 ln 1e-9, and a^39 b a little less: both are below 1e-308."""
    chain, lengths = PCFG.from_text("S -> a S 1e-9 | b 0.999999998 | c C 1e-9\nC -> d 1.0"), LengthRange(40, 40)
    tilting = Tilting(chain, Count(("c",), 1, 1))
    required = tilting.given(lengths=lengths)
    assert required.lengths == lengths
    event, other = 39 * math.log(1e-9), 39 * math.log(1e-9) + math.log(0.999999998)
    assert required.log_z == pytest.approx(event, rel=1e-12)
    assert required.log_partition(lengths) == pytest.approx(event - np.logaddexp(event, other), abs=1e-10)
    assert tilting.event_probability(lengths) == pytest.approx(1.0 / (1.0 + math.exp(other - event)), abs=1e-10)
    assert tilting.with_probability(0.9, lengths).expected_reward(lengths) == pytest.approx(0.9, abs=1e-10)
    with pytest.raises(InputError, match=r"no sentence with a length in 1\.\.1 satisfies"):
        tilting.given(lengths=LengthRange(1, 1))
    assert chain.exact.string_log_probs([["a"] * 39 + ["b"]], lengths)[0] == pytest.approx(
        other - np.logaddexp(event, other), abs=1e-10
    )
    with pytest.raises(InputError, match=r"has probability exp\(-807\.514\), too small for float64"):
        chain.exact.length_pmf(40, lengths)
