"""Exact probabilities of treebank trees, and samples, against enumeration."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from coarse_trees import shown
from hypothesis import given
from random_grammars import cases
from reference_inference import derivations, rules_of
from scipy.stats import chisquare

from truesource.grammar.inference.posterior import posterior
from truesource.grammar.parsing.kbest import k_best_viterbi
from truesource.grammar.parsing.samples import ScoredTree, TreeScores, posterior_samples, scored_trees
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree, fold
from truesource.grammar.treebank.brackets import read_text

Case = tuple[PCFG, list[list[str]]]
#: Two symbols of one label, two that binarisation made, chains through them, and no cycle.
HIDDEN = replace(
    PCFG.from_text(
        "S -> I X 0.3 | X Y 0.2 | I 0.2 | X 0.2 | a 0.1\nI -> J X 0.4 | X X 0.3 | J 0.2 | Y 0.1\n"
        "J -> X Y 0.6 | X 0.4\nX -> a 0.5 | b 0.3 | X Y 0.2\nY -> a 0.4 | b 0.6"
    ),
    labels=("S", "@S", "@S", "X", "X"),
)


def labelled(pcfg: PCFG) -> PCFG:
    """The same grammar with some symbols of one label, and two that binarisation made."""
    names = {"S": "S", "A": "X", "B": "@S", "C": "X", "D": "@X"}
    return replace(pcfg, labels=tuple(names[name] for name in pcfg.symbols))


def project(tree: Tree, pcfg: PCFG) -> Tree:
    """A derivation with labels in place of symbols."""
    label = dict(zip(pcfg.symbols, pcfg.labels, strict=True))
    return fold(tree, lambda node, children: Tree(label[node.label], tuple(children) or node.children))


def distribution(pcfg: PCFG, words: list[str]) -> dict[str, float]:
    """P(tree, sentence) of every treebank tree of a grammar without unary cycles."""
    sums: dict[str, list[float]] = defaultdict(list)
    for tree, p in derivations(rules_of(pcfg), words):
        sums[str(shown(project(tree, pcfg)))].append(p)
    return {tree: math.fsum(ps) for tree, ps in sums.items()}


def parsed(bracketing: str) -> Tree:
    ((_, tree),) = read_text(bracketing)
    return tree


@pytest.mark.long
@given(cases(max_size=3, unary_cycles=False))
def test_the_probability_of_a_tree_is_the_sum_of_its_derivations(case: Case) -> None:
    pcfg, (sentence,) = labelled(case[0]), case[1]
    scores = TreeScores(pcfg)
    for bracketing, p in distribution(pcfg, sentence).items():
        assert math.exp(scores.log_p(parsed(bracketing))) == pytest.approx(p, rel=1e-10)


@pytest.mark.long
@given(cases(max_size=3))
def test_cycles_of_visible_symbols_are_counted_as_often_as_the_tree_shows_them(case: Case) -> None:
    names = {"S": "S", "A": "X", "B": "Y", "C": "X", "D": "Y"}
    pcfg, (sentence,) = replace(case[0], labels=tuple(names[name] for name in case[0].symbols)), case[1]
    rules = rules_of(pcfg)
    label = dict(zip(pcfg.symbols, pcfg.labels, strict=True))

    def weights(node: Tree, below: list[dict[str, float]]) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        if not below:
            for a, word, p in rules.lexical:
                found[a] += p * (word == node.children[0])
        elif len(below) == 1:
            for a, b, p in rules.unary:
                found[a] += p * below[0].get(b, 0.0)
        else:
            for a, b, c, p in rules.binary:
                found[a] += p * below[0].get(b, 0.0) * below[1].get(c, 0.0)
        return {a: p for a, p in found.items() if label[a] == node.label}

    if pcfg.log_prob(sentence) == -math.inf:
        return
    found, rng, scores = posterior(pcfg, sentence), np.random.default_rng(2), TreeScores(pcfg)
    for tree, log_p in posterior_samples(found, 5, rng):
        exact = fold(tree, weights)["S"]
        assert math.exp(scores.log_p(tree)) == pytest.approx(exact, rel=1e-10)
        assert log_p == pytest.approx(math.log(exact) - found.log_prob, abs=1e-10)


@pytest.mark.long
def test_hidden_cycles_are_summed() -> None:
    """S -> I, then I -> J -> I any number of rounds, and a word from I or J."""
    pcfg = replace(
        PCFG.from_text("S -> I 1.0\nI -> J 0.5 | T T 0.5\nJ -> I 0.4 | T T 0.6\nT -> t 1.0"),
        labels=("S", "@S", "@X", "T"),
    )
    tree = parsed("(S (T t) (T t))")
    assert math.exp(TreeScores(pcfg).log_p(tree)) == pytest.approx((0.5 + 0.5 * 0.6) / (1.0 - 0.5 * 0.4), rel=1e-12)
    assert (
        posterior_samples(posterior(pcfg, ["t", "t"]), 3, np.random.default_rng(0)) == [(tree, pytest.approx(0.0))] * 3
    )


@pytest.mark.long
@pytest.mark.parametrize("sentence", ["a", "a b", "b a b", "a a b a"], ids=["1", "2", "3", "4"])
def test_samples_have_the_exact_distribution_of_trees(sentence: str) -> None:
    words = sentence.split()
    found = posterior(HIDDEN, words)
    exact = {tree: p / math.exp(found.log_prob) for tree, p in distribution(HIDDEN, words).items()}
    assert math.fsum(exact.values()) == pytest.approx(1.0, abs=1e-12)
    n = 5000
    drawn = posterior_samples(found, n, np.random.default_rng(11))
    for tree, log_p in drawn:
        assert log_p == pytest.approx(math.log(exact[str(tree)]), abs=1e-10)
    counts = Counter(str(tree) for tree, _ in drawn)
    cells = [tree for tree, p in exact.items() if n * p >= 5.0]
    observed = [counts[tree] for tree in cells]
    expected = [n * exact[tree] for tree in cells]
    rest = n - math.fsum(expected)
    if rest >= 5.0:
        observed.append(n - sum(observed))
        expected.append(rest)
    else:
        assert n - sum(observed) < 25
        expected = [x * sum(observed) / math.fsum(expected) for x in expected]
    assert len(observed) >= 2
    assert chisquare(observed, expected).pvalue > 0.001


@pytest.mark.long
def test_one_seed_gives_the_same_samples() -> None:
    found = posterior(HIDDEN, ["a", "b", "a"])
    first, second, other = (posterior_samples(found, 20, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == second != other


@pytest.mark.long
def test_long_trees_do_not_underflow() -> None:
    """All binary trees over n words are equally probable."""
    pcfg = PCFG.from_text("S -> S S 0.3 | rare 1e-9 | other 0.699999999")
    n = 200
    found = posterior(pcfg, ["rare"] * n)
    ((tree, log_p),) = posterior_samples(found, 1, np.random.default_rng(4))
    assert TreeScores(pcfg).log_p(tree) == pytest.approx((n - 1) * math.log(0.3) + n * math.log(1e-9), rel=1e-12)
    assert log_p == pytest.approx(-math.log(math.comb(2 * n - 2, n - 1) // n), rel=1e-9)


@pytest.mark.long
def test_flat_nodes_sum_over_their_binarisations() -> None:
    flat = PCFG.from_text("S -> I I 0.9 | t 0.1\nI -> I I 0.3 | T 0.7\nT -> t 1.0")
    flat = replace(flat, labels=("S", "@S", "T"))
    words = ["t"] * 30
    ((tree, log_p),) = posterior_samples(posterior(flat, words), 1, np.random.default_rng(0))
    assert str(tree) == f"(S{' (T t)' * 30})"
    assert log_p == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    "bracketing", ["(S (Y b) (Y b))", "(X a)", "(S (X never))", "(NEW (X a))", "(S (NEW a) (X a))", "(S (S a) (X a))"]
)
def test_trees_that_the_grammar_cannot_make_have_no_probability(bracketing: str) -> None:
    assert TreeScores(HIDDEN).log_p(parsed(bracketing)) == -math.inf


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        (Tree("S", (Tree("X", ("a",)), "b")), "a word is next to other children of 'S'; give each word a preterminal"),
        (Tree("S", ("a", "b")), "a word is next to other children of 'S'; give each word a preterminal"),
        (Tree("S", ()), "no children"),
        (
            Tree("S", (Tree("@S", (Tree("X", ("a",)), Tree("X", ("b",)))), Tree("X", ("a",)))),
            "the tree has a node '@S' of binarisation; unbinarise it first",
        ),
    ],
)
def test_what_is_no_treebank_tree_is_refused(tree: Tree, why: str) -> None:
    with pytest.raises(InputError, match=why):
        TreeScores(HIDDEN).log_p(tree)


def test_no_samples_are_too_few() -> None:
    with pytest.raises(InputError, match="1 or more"):
        posterior_samples(posterior(HIDDEN, ["a"]), 0, np.random.default_rng(0))


@pytest.mark.long
def test_records_hold_the_words_of_the_sentence_escaped() -> None:
    sentence = ["(", "b c", "-LRB-"]
    known = ["a", "b", "a"]
    rows = [tree.record() for tree in scored_trees(HIDDEN, k_best_viterbi(HIDDEN, known, 4), sentence)]
    assert json.loads(json.dumps(rows)) == rows
    exact = distribution(HIDDEN, known)
    for row, (tree, score) in zip(rows, k_best_viterbi(HIDDEN, known, 4), strict=True):
        assert set(row) == {"tree", "score", "log_p"}
        assert row["score"] == score
        assert row["log_p"] == pytest.approx(math.log(exact[str(tree)]), abs=1e-10)
        assert parsed(str(row["tree"])).leaves() == sentence
        assert r"\x28" in str(row["tree"])
        assert r"b\x20c" in str(row["tree"])
    nothing = ScoredTree(parsed("(S (A a))"), -1.5, -math.inf)  # the tree of many rules that are likely one by one
    assert nothing.record() == {"tree": "(S (A a))", "score": -1.5, "log_p": None}
    with pytest.raises(InputError, match="words for the tree"):
        scored_trees(HIDDEN, k_best_viterbi(HIDDEN, known, 1), ["a"])
