"""The k best trees against brute force over all of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from coarse_trees import Brute, shown
from hypothesis import given, settings
from random_grammars import cases
from reference_inference import derivations, rules_of

from truesource.grammar.inference import posterior as max_rule
from truesource.grammar.inference.posterior import max_rule_tree, posterior
from truesource.grammar.parsing import kbest
from truesource.grammar.parsing.kbest import k_best_max_rule, k_best_viterbi
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree, fold
from truesource.grammar.treebank.binarise import splice

Case = tuple[PCFG, list[list[str]]]
EVERY = 10**6
CYCLES = PCFG.from_text(
    "S -> A 0.45 | S B 0.25 | b 0.1 | B S 0.2\n"
    "A -> S 0.3 | B 0.5 | A A 0.1 | a 0.1\nB -> A 0.2 | B B 0.1 | b 0.6 | a 0.1"
)
#: Every tree over the words is the same one when binarisation is undone.
FLAT = replace(PCFG.from_text("S -> I I 0.9 | t 0.1\nI -> I I 0.3 | T 0.7\nT -> t 1.0"), labels=("S", "@S", "T"))


def labelled(pcfg: PCFG, few: bool = False) -> PCFG:
    """The same grammar with some symbols of one label, and one that binarisation made."""
    names = {"S": "S", "A": "X", "B": "@S", "C": "X" if few else "Y", "D": "@S" if few else "@X"}
    return replace(pcfg, labels=tuple(names[name] for name in pcfg.symbols))


def project(tree: Tree, pcfg: PCFG) -> Tree:
    """A derivation with labels in place of symbols."""
    label = dict(zip(pcfg.symbols, pcfg.labels, strict=True))
    return fold(tree, lambda node, children: Tree(label[node.label], tuple(children) or node.children))


def check(found: list[tuple[Tree, float]], wanted: dict[str, float], least: float) -> None:
    """Whether the trees are those that are wanted, best first, as far as they are at least so probable."""
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    own = {str(tree): math.exp(score) for tree, score in found}
    assert len(own) == len(found)
    for tree in {t for t, p in (*own.items(), *wanted.items()) if p > least}:
        assert own[tree] == pytest.approx(wanted[tree], rel=1e-9, abs=1e-12)


@pytest.mark.long
@given(cases(max_size=3))
@settings(max_examples=60)
def test_trees_by_the_product_of_their_rules_are_all_there_best_first(case: Case) -> None:
    pcfg, (sentence,) = labelled(case[0], few=len(case[1][0]) > 2), case[1]
    brute = Brute(pcfg, sentence)
    if brute.reference.total == 0.0:
        return
    wanted: dict[str, float] = {}
    for tree, p in brute.trees(0, len(sentence), "S"):
        name = str(shown(tree))
        wanted[name] = max(p, wanted.get(name, 0.0))
    found = posterior(pcfg, sentence)
    every = k_best_max_rule(found, EVERY)
    check(every, wanted, 1e-9)
    best, score = max_rule_tree(found)
    assert every[0] == (shown(best), pytest.approx(score, abs=1e-12))
    for k in (1, 2, 3, 7):
        assert k_best_max_rule(found, k) == every[:k]


@pytest.mark.long
@given(cases(max_size=3))
def test_trees_by_their_best_derivation_are_all_there_best_first(case: Case) -> None:
    pcfg, (sentence,) = labelled(case[0]), case[1]
    wanted: dict[str, float] = {}
    for tree, p in derivations(rules_of(pcfg), sentence):
        name = str(shown(project(tree, pcfg)))
        wanted[name] = max(p, wanted.get(name, 0.0))
    if not wanted:
        with pytest.raises(InputError, match="has probability 0"):
            k_best_viterbi(pcfg, sentence, 2)
        return
    every = k_best_viterbi(pcfg, sentence, EVERY)
    check(every, wanted, 0.0)
    assert every[0][1] == pytest.approx(pcfg.viterbi(sentence)[1], abs=1e-10)
    for k in (1, 2, 3, 7):
        assert k_best_viterbi(pcfg, sentence, k) == every[:k]


@pytest.mark.long
@pytest.mark.parametrize("sentence", ["a", "a b", "b a b"], ids=["1", "2", "3"])
def test_chains_that_go_round_are_left_out_and_all_others_are_there(sentence: str) -> None:
    words = sentence.split()
    exact = derivations(rules_of(CYCLES), words)
    check(k_best_viterbi(CYCLES, words, EVERY), {str(tree): p for tree, p in exact}, 0.0)
    by_rules = k_best_max_rule(posterior(CYCLES, words), EVERY)
    assert {str(tree) for tree, _ in by_rules} == {str(tree) for tree, _ in exact}
    check(by_rules, {str(tree): p for tree, p in Brute(CYCLES, words).trees(0, len(words), "S")}, 0.0)


@pytest.mark.long
@pytest.mark.parametrize(("window", "smallest"), [(0.0, 0.999), (0.5, 1e-6), (3.0, 0.1), (math.inf, 1e-2)])
def test_where_trees_are_looked_for_first_changes_nothing(
    window: float, smallest: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["b", "a", "b"]
    found = posterior(CYCLES, words)
    before = [[k_best_max_rule(found, k), k_best_viterbi(CYCLES, words, k)] for k in (2, 5, 40, 200)]
    monkeypatch.setattr(kbest, "WINDOW", window)
    monkeypatch.setattr(max_rule, "SMALLEST_SPAN", smallest)
    assert [[k_best_max_rule(found, k), k_best_viterbi(CYCLES, words, k)] for k in (2, 5, 40, 200)] == before


@pytest.mark.long
def test_ambiguity_of_the_binarisation_alone_is_none() -> None:
    """Catalan(23) binarised trees, more than 3e11, are one treebank tree."""
    words = ["t"] * 24
    for found in (k_best_max_rule(posterior(FLAT, words), 10), k_best_viterbi(FLAT, words, 10)):
        ((tree, _),) = found
        assert str(tree) == f"(S{' (T t)' * 24})"


@pytest.mark.long
def test_trees_of_equal_score_stand_in_one_order() -> None:
    pcfg = PCFG.from_text("S -> A B 0.25 | B A 0.25 | A A 0.25 | B B 0.25\nA -> a 0.5 | A A 0.5\nB -> a 0.5 | B B 0.5")
    words = ["a"] * 4
    found = posterior(pcfg, words)
    assert len({round(score, 9) for _, score in k_best_viterbi(pcfg, words, EVERY)}) == 1
    for search in (lambda k: k_best_max_rule(found, k), lambda k: k_best_viterbi(pcfg, words, k)):
        every = search(EVERY)
        assert len(every) == 4 * 5
        assert len({str(tree) for tree, _ in every}) == len(every)
        for k in (1, 2, 7, 19, 20, 21):
            assert search(k) == every[:k]
    assert k_best_max_rule(found, 1)[0][0] == splice(max_rule_tree(found)[0])


@pytest.mark.long
def test_one_word() -> None:
    pcfg = PCFG.from_text("S -> A 0.5 | B 0.3 | a 0.2\nA -> B 0.5 | a 0.5\nB -> a 1.0")
    wanted = {"(S (A (B a)))": 0.25, "(S (A a))": 0.25, "(S (B a))": 0.3, "(S a)": 0.2}
    check(k_best_viterbi(pcfg, ["a"], 10), wanted, 0.0)
    by_rules = k_best_max_rule(posterior(pcfg, ["a"]), 10)
    # factors: S -> A 0.5, S -> B 0.3, A -> B 0.25; the word by S 0.2, A 0.25, B 0.55
    products = {"(S (A (B a)))": 0.5 * 0.25 * 0.55, "(S (A a))": 0.5 * 0.25, "(S (B a))": 0.3 * 0.55, "(S a)": 0.2}
    check(by_rules, products, 0.0)
    assert str(by_rules[0][0]) == "(S a)"


@pytest.mark.long
def test_long_sentences() -> None:
    pcfg = PCFG.from_text("S -> A S 0.5 | S A 0.2 | a 0.1 | b 0.2\nA -> a 0.3 | b 0.3 | A A 0.4")
    words = np.random.default_rng(5).choice(["a", "b"], 150).tolist()
    for found in (k_best_max_rule(posterior(pcfg, words), 5), k_best_viterbi(pcfg, words, 5)):
        assert len({str(tree) for tree, _ in found}) == 5
        assert all(tree.leaves() == words for tree, _ in found)


@pytest.mark.parametrize("k", [0, -1])
def test_no_trees_are_too_few(k: int) -> None:
    with pytest.raises(InputError, match="1 or more"):
        k_best_viterbi(CYCLES, ["a"], k)
    with pytest.raises(InputError, match="1 or more"):
        k_best_max_rule(posterior(CYCLES, ["a"]), k)


@pytest.mark.long
def test_a_start_symbol_that_binarisation_made_has_no_treebank_tree() -> None:
    pcfg = replace(CYCLES, labels=("@S", "A", "B"))
    with pytest.raises(InputError, match="cannot have the label '@S'"):
        k_best_viterbi(pcfg, ["a"], 2)
    with pytest.raises(InputError, match="cannot have the label '@S'"):
        k_best_max_rule(posterior(pcfg, ["a"]), 2)


@pytest.mark.long
def test_chains_without_a_way_out_are_not_followed() -> None:
    """Labels A0 to A13 rewrite to each other in every order, but only S leads to the one that ends."""
    names = [f"A{i}" for i in range(14)]
    rules = ["S -> Z 0.5 | " + " | ".join(f"{name} {0.5 / 14}" for name in names), "Z -> z 1.0"]
    rules += [f"{a} -> S 0.01 | " + " | ".join(f"{b} {0.99 / 13}" for b in names if b != a) for a in names]
    pcfg = PCFG.from_text("\n".join(rules))
    assert [str(tree) for tree, _ in k_best_viterbi(pcfg, ["z"], 10)] == ["(S (Z z))"]
    assert [str(tree) for tree, _ in k_best_max_rule(posterior(pcfg, ["z"]), 10)] == ["(S (Z z))"]
