"""Drawn trees, derivations as the rules were written, and the one line of a distribution."""

from __future__ import annotations

from xml.etree import ElementTree

from truesource import PCFG
from truesource.grammar.tree import Tree

SPACE = "{http://www.w3.org/2000/svg}"
GRAMMAR = PCFG.from_text(
    "S -> NP V 1\nNP -> 'the' N 'that' V 0.4 | 'they' 0.6\nN -> 'dog' 1\nV -> 'barks' 0.8 | '<b>' 0.2"
)
SENTENCE = ["the", "dog", "that", "barks", "<b>"]


def drawn(tree: Tree) -> dict[str, tuple[float, float]]:
    root = ElementTree.fromstring(tree.svg())
    return {node.text or "": (float(node.get("x", "")), float(node.get("y", ""))) for node in root.iter(f"{SPACE}text")}


def test_a_derivation_is_shown_as_its_rules_were_written() -> None:
    tree, log_prob = GRAMMAR.viterbi(SENTENCE, coarse=True)
    assert str(tree) == "(S (NP ('the' the) (N dog) ('that' that) (V barks)) (V <b>))"
    derivation, same = GRAMMAR.viterbi(SENTENCE)
    assert "@" in str(derivation) and log_prob == same


def test_words_stand_in_order_and_labels_over_the_middle_of_their_children() -> None:
    tree = GRAMMAR.viterbi(SENTENCE, coarse=True)[0]
    places = drawn(tree)
    assert sorted(places, key=lambda text: places[text][0] if text in SENTENCE else 1e9)[:5] == SENTENCE
    assert "'the'" not in places  # a quoted word is drawn once
    assert places["NP"][0] == (places["the"][0] + places["barks"][0]) / 2
    assert places["S"][1] < places["NP"][1] < places["N"][1] < places["dog"][1]
    assert len(ElementTree.fromstring(tree.svg()).findall(f".//{SPACE}line")) == 9  # one above all but the top


def test_words_and_wide_labels_do_not_overlap() -> None:
    tree = Tree("S", (Tree("AVERYLONGLABEL", ("a",)), Tree("ANOTHERLONGLABEL", ("b",))))
    places = drawn(tree)
    assert places["ANOTHERLONGLABEL"][0] - places["AVERYLONGLABEL"][0] > 8 * len("ANOTHERLONGLABEL")


def test_a_deep_tree_is_drawn() -> None:
    tree = Tree("X", ("w",))
    for _ in range(3000):
        tree = Tree("X", (tree,))
    assert tree.svg().count("<line") == 3001


def test_a_distribution_in_one_line() -> None:
    assert repr(GRAMMAR.next_token([])) == (
        "NextToken('they': 0.6000, 'the': 0.4000, 'dog': 0.0000, 'barks': 0.0000, '<b>': 0.0000, 1 more; stop: 0.0000)"
    )
