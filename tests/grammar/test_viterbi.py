"""The most probable derivation against enumeration of derivations."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from random_grammars import cases, linear_pcfgs
from reference_inference import best_log_prob, derivations, rules_of, tree_log_prob

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

Case = tuple[PCFG, list[list[str]]]
CYCLES = PCFG.from_text(
    "S -> A 0.45 | S B 0.25 | b 0.1 | B S 0.2\n"
    "A -> S 0.3 | B 0.5 | A A 0.1 | a 0.1\nB -> A 0.2 | B B 0.1 | b 0.6 | a 0.1"
)


@pytest.mark.long
@given(cases(max_size=5) | cases(max_size=5, grammars=linear_pcfgs()))
def test_the_tree_is_a_derivation_of_the_sentence_and_none_is_better(case: Case) -> None:
    pcfg, (sentence,) = case
    rules = rules_of(pcfg)
    wanted = best_log_prob(rules, sentence)
    if wanted == -math.inf:
        with pytest.raises(InputError, match="has probability 0"):
            pcfg.viterbi(sentence)
        return
    tree, score = pcfg.viterbi(sentence)
    assert tree.label == rules.start
    assert tree.leaves() == sentence
    assert tree_log_prob(rules, tree) == pytest.approx(score, rel=1e-10, abs=1e-12)
    assert score == pytest.approx(wanted, rel=1e-10, abs=1e-12)
    assert score <= pcfg.log_prob(sentence) + 1e-12


@pytest.mark.parametrize("sentence", [s for n in (1, 2, 3) for s in itertools.product("ab", repeat=n)])
def test_no_enumerated_derivation_is_better(sentence: tuple[str, ...]) -> None:
    rules = rules_of(CYCLES)
    enumerated = derivations(rules, sentence)
    tree, score = CYCLES.viterbi(sentence)
    assert math.exp(score) == pytest.approx(max(p for _, p in enumerated), rel=1e-10)
    assert tree in {t for t, _ in enumerated}


@pytest.mark.long
@given(cases(max_size=3, max_symbols=3, unary_cycles=False))
def test_the_score_is_the_greatest_of_all_derivations(case: Case) -> None:
    pcfg, (sentence,) = case
    enumerated = derivations(rules_of(pcfg), sentence)
    if not enumerated:
        return
    assert math.exp(pcfg.viterbi(sentence)[1]) == pytest.approx(max(p for _, p in enumerated), rel=1e-10)


@pytest.mark.long
def test_unary_rules_of_probability_one_stand_in_the_tree() -> None:
    grammar = PCFG.from_text("S -> A 1.0\nA -> B 1.0\nB -> a 0.5 | b 0.5")
    tree, score = grammar.viterbi(["a"])
    assert str(tree) == "(S (A (B a)))"
    assert score == pytest.approx(math.log(0.5), rel=1e-12)


@pytest.mark.long
def test_a_certain_sentence_scores_zero() -> None:
    tree, score = PCFG.from_text("S -> A B 1.0\nA -> a 1.0\nB -> b 1.0").viterbi(["a", "b"])
    assert str(tree) == "(S (A a) (B b))"
    assert score == pytest.approx(0.0, abs=1e-12)


@pytest.mark.long
def test_a_long_sentence_neither_underflows_nor_recurses_too_deep() -> None:
    grammar = PCFG.from_text("S -> A S 0.9 | a 0.1\nA -> a 1.0")
    n = 400
    tree, score = grammar.viterbi(["a"] * n)
    assert score == pytest.approx((n - 1) * math.log(0.9) + math.log(0.1), rel=1e-12)
    assert tree.leaves() == ["a"] * n
    assert tree.height() == n + 1


@pytest.mark.parametrize("sentence", [[], ["never-seen"], ["a", "never-seen"]])
def test_sentences_without_a_tree_are_refused(sentence: list[str]) -> None:
    with pytest.raises(InputError):
        CYCLES.viterbi(sentence)


@pytest.mark.long
@pytest.mark.parametrize("right", [True, False])
def test_the_tree_of_ten_thousand_tokens_of_a_linear_grammar(right: bool) -> None:
    """By hand: the chain S -> A is 0.5 each, T reads a by U, the last (first) token stands alone."""
    grammar = PCFG.from_text(f"S -> A 0.5 | b 0.5\nA -> {'T S' if right else 'S T'} 1\nT -> U 0.8 | a 0.2\nU -> a 1")
    words = ["a"] * 9_999
    tree, score = grammar.viterbi([*words, "b"] if right else ["b", *words])
    assert score == pytest.approx(10_000 * math.log(0.5) + 9_999 * math.log(0.8), rel=1e-12)
    assert tree.leaves() == ([*words, "b"] if right else ["b", *words])
    assert tree.height() == 2 * 9_999 + 3
