"""Max-rule and max-span trees against brute force over all coarse trees."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from coarse_trees import Brute
from hypothesis import given, settings
from random_grammars import cases

from truesource.grammar.inference import posterior as posteriors
from truesource.grammar.inference.posterior import max_rule_tree, max_span_tree, posterior
from truesource.grammar.pcfg import PCFG
from truesource.grammar.tree import Tree

pytestmark = pytest.mark.long

Case = tuple[PCFG, list[list[str]]]
CYCLES = PCFG.from_text(
    "S -> A 0.45 | S B 0.25 | b 0.1 | B S 0.2\n"
    "A -> S 0.3 | B 0.5 | A A 0.1 | a 0.1\nB -> A 0.2 | B B 0.1 | b 0.6 | a 0.1"
)
#: The best derivation has A1, but A2, A3 and A4 together are more probable, and agree on the coarse tree.
SPLIT = replace(
    PCFG.from_text(
        "S -> A1 0.4 | A2 0.2 | A3 0.2 | A4 0.2\n"
        "A1 -> X Y 1.0\nA2 -> Y X 1.0\nA3 -> Y X 1.0\nA4 -> Y X 1.0\nX -> a 1.0\nY -> a 1.0"
    ),
    labels=("S", "A", "A", "A", "A", "X", "Y"),
)


def coarse(pcfg: PCFG, few: bool) -> PCFG:
    """The same grammar with the labels X and Y, or with S too."""
    names = {"S": "X" if few else "S", "A": "X", "B": "Y", "C": "Y", "D": "X"}
    return replace(pcfg, labels=tuple(names[name] for name in pcfg.symbols))


def labelled(tree: Tree) -> list[tuple[int, int, str]]:
    """Spans of two tokens or more with their labels."""
    found, end = [], 0
    for node in tree.subtrees():
        size = len(node.leaves())
        if size > 1:
            found.append((end, end + size, node.label))
        end += node.is_preterminal
    return found


@given(cases(max_size=3))
def test_no_coarse_tree_has_a_greater_product(case: Case) -> None:
    pcfg, (sentence,) = coarse(case[0], few=len(case[1][0]) > 2), case[1]
    brute = Brute(pcfg, sentence)
    if brute.reference.total == 0.0:
        return
    tree, score = max_rule_tree(posterior(pcfg, sentence))
    assert (tree.label, tree.leaves()) == (pcfg.labels[pcfg.start], sentence)
    assert math.exp(score) == pytest.approx(brute.product(tree), rel=1e-9)
    most = max(p for _, p in brute.trees(0, len(sentence), tree.label))
    assert math.exp(score) == pytest.approx(most, rel=1e-9)
    with pytest.MonkeyPatch.context() as patch:  # improbable spans left out at first are taken in again
        patch.setattr(posteriors, "SMALLEST_SPAN", 0.999)
        assert max_rule_tree(posterior(pcfg, sentence))[1] == pytest.approx(score, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("sentence", ["a", "a b", "b a b"], ids=["1", "2", "3"])
def test_unary_cycles_do_not_go_round_in_the_best_tree(sentence: str) -> None:
    words = sentence.split()
    brute = Brute(CYCLES, words)
    tree, score = max_rule_tree(posterior(CYCLES, words))
    candidates = list(brute.trees(0, len(words), "S"))
    assert math.exp(score) == pytest.approx(max(p for _, p in candidates), rel=1e-10)
    assert tree in {t for t, p in candidates if p > math.exp(score) * (1 - 1e-9)}


@given(cases(max_size=5))
@settings(max_examples=30)
def test_no_bracketing_and_labels_have_more_correct_spans(case: Case) -> None:
    pcfg, (sentence,) = coarse(case[0], few=False), case[1]
    brute = Brute(pcfg, sentence)
    if brute.reference.total == 0.0:
        return
    n = len(sentence)
    tree, score = max_span_tree(posterior(pcfg, sentence))
    assert (tree.label, tree.leaves()) == (pcfg.labels[pcfg.start], sentence)
    chosen = labelled(tree)
    assert len(set(chosen)) == len(chosen)
    most = max(math.fsum(brute.gain(i, j) for i, j in spans) for spans in brute.bracketings(0, n))
    assert math.fsum(brute.label(*span) - 0.5 for span in chosen) == pytest.approx(most, abs=1e-9)
    # one token: the most probable tag, and above it the other labels more probable than not
    over_one = 0.0
    at = 0
    tops = [node for node in tree.subtrees() if len(node.leaves()) == 1]
    for i in range(n):
        chain = []
        while True:
            chain.append(tops[at].label)
            at += 1
            if tops[at - 1].is_preterminal:
                break
        tag = chain.pop()
        assert brute.tag(i, tag) == pytest.approx(max(brute.tag(i, label) for label in brute.labels), rel=1e-9)
        if n > 1:
            probs = {x: brute.label(i, i + 1, x) for x in brute.labels if x != tag}
            assert set(chain) >= {x for x, p in probs.items() if p > 0.5 + 1e-9}
            assert set(chain) <= {x for x, p in probs.items() if p > 0.5 - 1e-9}
        over_one += brute.tag(i, tag) + sum(brute.label(i, i + 1, label) for label in chain)
    assert score == pytest.approx(math.fsum(brute.label(*span) for span in chosen) + over_one, rel=1e-9)


def test_the_start_label_of_one_word_counts_above_a_tag_of_its_own_label() -> None:
    """A stands over the word with 0.72; S makes it with 0.28 + 0.72 x 0.9, and is above A for certain."""
    pcfg = PCFG.from_text("S -> A 0.72 | 'a' 0.28\nA -> T 0.9 | 'a' 0.1\nT -> 'a' 1.0")
    pcfg = replace(pcfg, labels=("S", "A", "S"))
    tree, score = max_span_tree(posterior(pcfg, ["a"]))
    assert str(tree) == "(S (A (S a)))"
    assert score == pytest.approx(1.0 + 0.72 + 0.28 + 0.72 * 0.9, rel=1e-12)


def test_symbols_of_one_label_add_up() -> None:
    """Viterbi follows the one best symbol; the coarse rules of the three others outweigh it."""
    found = posterior(SPLIT, ["a", "a"])
    assert str(SPLIT.viterbi(["a", "a"])[0]) == "(S (A1 (X a) (Y a)))"
    tree, score = max_rule_tree(found)
    assert str(tree) == "(S (A (Y a) (X a)))"
    assert math.exp(score) == pytest.approx(0.6**3, rel=1e-12)  # A -> Y X, and two tags
    assert str(max_span_tree(found)[0]) == "(S (A (Y a) (X a)))"
    assert max_span_tree(found)[1] == pytest.approx(1 + 1 + 0.6 + 0.6, rel=1e-12)


def test_spans_may_be_joined_that_no_derivation_joins() -> None:
    """The labelled recall tree may use rules that the grammar does not have, the max-rule tree may not."""
    pcfg = PCFG.from_text(
        "S -> P U 0.45 | Q V 0.28 | Q2 V2 0.27\nP -> 'a' 1.0\nQ -> 'a' 1.0\nQ2 -> 'a' 1.0\n"
        "U -> x x 1.0\nV -> x x 1.0\nV2 -> x x 1.0\nx -> 'a' 1.0"
    )
    pcfg = replace(pcfg, labels=tuple({"Q2": "Q", "V2": "W"}.get(name, name) for name in pcfg.symbols))
    found = posterior(pcfg, ["a"] * 3)
    assert str(max_span_tree(found)[0]) == "(S (Q a) (U (x a) (x a)))"
    assert str(max_rule_tree(found)[0]) == "(S (P a) (U (x a) (x a)))"


@pytest.mark.parametrize("chain", [1, 15])
def test_all_labels_of_a_chain_count(chain: int) -> None:
    """Over a b stand all of X0, X1, ... (0.52) or none; each is worth 0.02, and its company costs 0.24."""
    rules = ["S -> X0 P 0.26 | O d 0.26 | a N 0.48", "O -> X0 c 1.0", "P -> c d 1.0", "N -> M d 1.0", "M -> b c 1.0"]
    rules += [f"X{i} -> X{i + 1} 1.0" for i in range(chain - 1)] + [f"X{chain - 1} -> a b 1.0"]
    rules += [f"{word} -> '{word}' 1.0" for word in "abcd"]
    tree, score = max_span_tree(posterior(PCFG.from_text("\n".join(rules)), list("abcd")))
    first = tree.children[0]
    assert isinstance(first, Tree)
    assert (first.label == "a") == (chain == 1)
    assert score == pytest.approx(5 + 2 * 0.48 if chain == 1 else 5 + chain * 0.52 + 0.26, rel=1e-12)


@pytest.mark.parametrize("best", [max_rule_tree, max_span_tree], ids=["rule", "span"])
def test_the_order_of_a_unary_chain_and_marks_of_binarisation_are_kept(best) -> None:  # type: ignore[no-untyped-def]
    pcfg = replace(
        PCFG.from_text("R -> S 1.0\nS -> V 1.0\nV -> I x 1.0\nI -> x x 1.0\nx -> 'a' 0.5 | 'b' 0.5"),
        labels=("R", "S", "V", "@V", "x"),
    )
    tree, _ = best(posterior(pcfg, ["a", "b", "a"]))
    assert str(tree) == "(R (S (V (@V (x a) (x b)) (x a))))"


@pytest.mark.parametrize("best", [max_rule_tree, max_span_tree], ids=["rule", "span"])
def test_long_sentences(best) -> None:  # type: ignore[no-untyped-def]
    pcfg = PCFG.from_text("S -> A S 0.5 | S A 0.2 | a 0.1 | b 0.2\nA -> a 0.3 | b 0.3 | A A 0.4")
    words = np.random.default_rng(5).choice(["a", "b"], 200).tolist()
    tree, score = best(posterior(pcfg, words))
    assert math.isfinite(score)
    assert tree.leaves() == words
    assert sum(1 for _ in tree.subtrees()) == 399
