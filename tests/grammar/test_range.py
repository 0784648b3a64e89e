"""Exact scores whose weights leave the range of one float: against fractions, and in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from chart_grammar import by_charts
from distribution_rows import masked_rows, next_rows
from fraction_inference import FractionGrammar, log
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import small_pcfgs

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.certificate import TOLERANCE
from truesource.grammar.inference.distributions import class_posteriors, next_token_distributions
from truesource.grammar.pcfg import PCFG

PRECISIONS = [np.float32, np.float64]
TOKEN = {np.float32: 1e-4, np.float64: 1e-11}  #: nats
#: all but the last word speak for A, by a factor of 9 each; the last word is B's
GARDEN_PATH = PCFG.from_text("""
S -> A 0.5 | B 0.5
A -> X A 0.9 | X Y 0.1
B -> Z B 0.9 | Z W 0.1
X -> a 0.9 | b 0.1
Z -> a 0.1 | b 0.9
Y -> y 1
W -> w 1
""")
BY_CHARTS = by_charts(GARDEN_PATH)  # the grammar is linear
BOTH = pytest.mark.parametrize("grammar", [GARDEN_PATH, BY_CHARTS], ids=["automaton", "charts"])
EXPONENTS = (0, 0, 0, 3, 40, 141, 290, 300)


def garden_path(n: int) -> tuple[list[str], float]:
    """A^n w and its log probability."""
    return ["a"] * n + ["w"], math.log(0.05) + (n - 1) * math.log(0.9) + n * math.log(0.1)


@pytest.mark.long
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("n", [1, 16, 25, 40, 100, 150, 200, 600])
@BOTH
def test_a_garden_path_of_any_length(grammar: PCFG, n: int, dtype: type) -> None:
    sentence, wanted = garden_path(n)
    row = grammar.exact.causal_log_probs([["a", "y"], sentence, ["b"] * n + ["w"]], dtype=dtype)[1]
    assert row.sum() == pytest.approx(wanted, abs=TOKEN[dtype] * (n + 1))
    before = math.log(0.5) + (n - 1) * math.log(0.9) + math.log(0.9**n + 0.1**n)  # a^n, and more to come
    assert row[:-2].sum() == pytest.approx(before, abs=TOKEN[dtype] * n)


@pytest.mark.long
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("n", [1, 16, 40, 180, 400])
@BOTH
def test_a_masked_word_on_a_garden_path(grammar: PCFG, n: int, dtype: type) -> None:
    sentence, _ = garden_path(n)
    (row,) = grammar.exact.masked_log_probs([sentence], dtype=dtype)
    np.testing.assert_allclose(row[:-1], math.log(0.1), atol=TOKEN[dtype])  # the rest says that it is B
    assert row[-1] == pytest.approx(-n * math.log(9.0) - math.log1p(9.0**-n), abs=TOKEN[dtype] * n)


@pytest.mark.long
@pytest.mark.parametrize("n", [20, 180, 330])
@BOTH
def test_distributions_on_a_garden_path(grammar: PCFG, n: int) -> None:
    sentence, wanted = garden_path(n)
    lengths = LengthRange(2, n + 3)
    assert grammar.prefix_log_prob(sentence) == pytest.approx(wanted, abs=1e-9)
    after = grammar.next_token(sentence)
    assert after.stop == pytest.approx(1.0, rel=1e-10)
    within = grammar.next_token(sentence[:-1], lengths)
    assert within.probability.sum() + within.stop == pytest.approx(1.0, rel=1e-10)
    given_lengths = grammar.exact.causal_log_probs([sentence], lengths)[0].sum()
    assert given_lengths == pytest.approx(grammar.exact.string_log_probs([sentence], lengths)[0], abs=1e-9)
    (free,), (masked,) = next_rows(grammar.exact, [sentence]), masked_rows(grammar.exact, [sentence])
    assert sum(row.log_observed for row in free) == pytest.approx(wanted, abs=1e-9)
    np.testing.assert_allclose([row.log_observed for row in masked[:-1]], -math.log(10.0), rtol=1e-10)
    (tags,) = class_posteriors(grammar.exact, [sentence])
    np.testing.assert_allclose(tags[:-1, grammar.symbol_ids["Z"]], 1.0, rtol=1e-10)


@pytest.mark.long
@BOTH
def test_what_no_sentence_has_stays_impossible(grammar: PCFG) -> None:
    n = 200
    for last in (["a"], ["w", "w"], ["?"], []):
        assert grammar.log_prob(["a"] * n + last) == -math.inf


@pytest.mark.long
@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("power", [20, 141, 299, 307])
@pytest.mark.parametrize("kind", [PCFG.of, by_charts])
def test_rules_of_tiny_probability(kind: Callable[[PCFG], PCFG], power: int, dtype: type) -> None:
    tiny = -power * math.log(10.0)
    grammar = kind(PCFG.from_text(f"S -> A B 1\nA -> a 1e-{power} | b 1\nB -> b 0.5 | A B 0.5"))
    scores = grammar.exact.string_log_probs([["a", "b"], ["b", "b"], ["a", "a", "b"]], dtype=dtype)
    wanted = [tiny + math.log(0.5), math.log(0.5), 2 * tiny + math.log(0.25)]
    np.testing.assert_allclose(scores, wanted, rtol=1e-12, atol=TOKEN[dtype])
    (row,) = grammar.exact.masked_log_probs([["a", "a", "b"]], dtype=dtype)
    np.testing.assert_allclose(row, [tiny, tiny, 0.0], rtol=1e-12, atol=TOKEN[dtype])


@pytest.mark.long
def test_what_float32_cannot_hold_is_given_in_float64() -> None:
    """Weights of a sentence computed again lie outside the range of float32, however they are scaled."""
    tiny = PCFG.from_text("S -> S S 1 | T 1e-50\nT -> a 0.7 | b 0.3")
    rows = tiny.exact.masked_log_probs([["a", "b", "a"], ["a", "a", "a"]], dtype=np.float32)
    np.testing.assert_allclose(rows, np.log([[0.7, 0.3, 0.7], [0.7, 0.7, 0.7]]), atol=1e-12)
    rare = PCFG.from_text("S -> S S 0.3 | T 1e-50 | a 0.7\nT -> b 1")
    row = rare.exact.masked_log_probs([["b"]], dtype=np.float32)[0]
    np.testing.assert_allclose(row, math.log(1e-50 / 0.7), rtol=1e-12)
    late = PCFG.from_text("S -> A T 1\nA -> A A 0.3 | a 0.7\nT -> b 1e-50 | D 1\nD -> D D 1")
    blocks = next_token_distributions(late.exact, [["a", "b"]], lambda block: block, dtype=np.float32)
    np.testing.assert_allclose(
        [block.probability[0] for block in blocks][:2], [[1e-50, 0, 0], [0.3, 0.7, 0]], rtol=1e-9
    )


@pytest.mark.long
def test_a_probability_below_every_float() -> None:
    """1e-320 has lost most of its digits, e^-1000 all of them; logarithms have them."""
    grammar = PCFG.from_text("S -> a 0.5 | b 0.5")
    logp = np.array([-1000.0, 0.0])
    grammar = replace(grammar, lexical_logp=logp)
    np.testing.assert_allclose(grammar.exact.string_log_probs([["a"], ["b"]]), logp, rtol=1e-14)
    np.testing.assert_allclose(grammar.exact.masked_log_probs([["a"], ["b"]]), logp[:, None], rtol=1e-14)


@st.composite
def wide_pcfgs(draw: st.DrawFn) -> PCFG:
    """Small grammars with rules of any probability from 1e-300 to 1; every symbol keeps one rule of its size."""
    pcfg = draw(small_pcfgs(max_symbols=4, max_words=3))
    tables = [logp.copy() for _, logp in pcfg.tables()]
    for symbol in range(len(pcfg.symbols)):
        own = [(k, r) for k, (rules, _) in enumerate(pcfg.tables()) for r in np.flatnonzero(rules[:, 0] == symbol)]
        if not own:
            continue
        kept = draw(st.integers(0, len(own) - 1))
        for at, (k, r) in enumerate(own):
            if at != kept:
                tables[k][r] -= draw(st.sampled_from(EXPONENTS)) * math.log(10.0)
        total = math.log(math.fsum(math.exp(tables[k][r]) for k, r in own))
        for k, r in own:
            tables[k][r] -= total
    found = replace(pcfg, binary_logp=tables[0], unary_logp=tables[1], lexical_logp=tables[2])
    assume(found.exact.spectral_radius < 0.95 and (found.exact.mass > 1.0 - 1e-9).all())
    return found


@pytest.mark.long
@given(wide_pcfgs(), st.lists(st.integers(0, 2), min_size=1, max_size=5), st.sampled_from(PRECISIONS))
def test_scores_are_those_of_fractions(pcfg: PCFG, ids: list[int], dtype: type) -> None:
    truth = FractionGrammar(pcfg)
    ids = [min(w, len(pcfg.vocabulary) - 1) for w in ids]
    sentence = [pcfg.vocabulary[w] for w in ids]
    (causal,) = pcfg.exact.causal_log_probs([sentence], dtype=dtype)
    prefixes = np.array([0.0, *(log(truth.prefix(ids[:j])) for j in range(1, len(ids) + 1)), log(truth.joint(ids))])
    near = {"rtol": 1e-11, "atol": 1e-10 if dtype == np.float64 else 2e-4 * len(ids)}  # rules of 1e-40
    np.testing.assert_allclose(np.cumsum(causal), prefixes[1:], **near)
    (masked,) = pcfg.exact.masked_log_probs([sentence], dtype=dtype)
    for at in range(len(ids)):
        joint, others = truth.masked(ids, at)
        assert masked[at] == pytest.approx(log(joint / others) if joint else -math.inf, rel=1e-11, abs=near["atol"])
        if others:
            weights = pcfg.masked(sentence, at)
            assert weights[ids[at]] == pytest.approx(float(joint / others), rel=1e-10, abs=1e-300)


@pytest.mark.long
def test_a_rare_word_in_a_rare_sentence_keeps_its_probability() -> None:
    pcfg = PCFG.from_text("S -> A A 1.0 | A 1e-40\nA -> 'a' 1.0 | 'b' 1e-290")
    assert pcfg.masked(["b"], 0)[pcfg.vocabulary.index("b")] == pytest.approx(1e-290, rel=1e-10)


@pytest.mark.long
@given(wide_pcfgs(), st.lists(st.integers(0, 2), min_size=1, max_size=4), st.integers(1, 4), st.integers(0, 3))
def test_scores_given_lengths_are_those_of_fractions(pcfg: PCFG, ids: list[int], low: int, more: int) -> None:
    truth, lengths = FractionGrammar(pcfg), LengthRange(low, low + more)
    ids = [min(w, len(pcfg.vocabulary) - 1) for w in ids]
    z = truth.given_lengths([], lengths.low, lengths.high)[1]
    assume(z > 1e-250)
    (row,) = pcfg.exact.causal_log_probs([[pcfg.vocabulary[w] for w in ids]], lengths)
    for j in range(1, len(ids) + 1):
        wanted = log(truth.given_lengths(ids[:j], lengths.low, lengths.high)[0]) - log(z)
        assert row[:j].sum() == pytest.approx(wanted, rel=1e-11, abs=1e-10)
    whole = log(truth.joint(ids)) - log(z) if len(ids) in lengths else -math.inf
    assert row.sum() == pytest.approx(whole, rel=1e-11, abs=1e-10)


def test_the_closures_keep_small_entries() -> None:
    """Elimination with pivots leaves 1e-16 of the largest entry in all of them."""
    text = "S -> S T 0.4 | T U 0.6\nT -> U 0.5 | T U 0.3 | S U 1e-25 | a 0.2\nU -> T 1e-30 | U S 1e-20 | b 1"
    grammar = PCFG.from_text(text)
    wanted = FractionGrammar(grammar)
    exact = grammar.exact
    np.testing.assert_allclose(exact.mass, 1.0, rtol=1e-12)
    np.testing.assert_allclose(exact.unary_closure, np.array(wanted.chains, dtype=float), rtol=1e-12, atol=0.0)
    np.testing.assert_allclose(exact.left_corner_closure, np.array(wanted.corners, dtype=float), rtol=1e-12, atol=0.0)


def test_ordinary_sentences_are_certified_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing falls back on the slow charts where one scale is enough, impossible sentences included."""

    def slow(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("truesource.grammar.inference.exact.Exact.wide", property(slow))
    exact = BY_CHARTS.exact
    sentences = [garden_path(20)[0], ["a"] * 20, ["w", "a"], ["b", "a", "y"], ["?", "y"]]
    assert np.isfinite(exact.string_log_probs(sentences)).tolist() == [True, False, False, True, False]
    assert np.isfinite(exact.masked_log_probs(sentences)[3]).all()
    exact.causal_log_probs(sentences, LengthRange(2, 30))
    assert TOLERANCE["float64"] <= 1e-12
