"""The 64 languages of six switches: one entropy, one distribution over bags of words, the orders that they promise."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.generator.sampler import Sampler
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.languages.switches import STEMS, SwitchesSettings, phrases, stem
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

ALL = ["".join(digits) for digits in itertools.product("01", repeat=6)]
TINY: dict[str, Any] = {"nouns": 1, "verbs": 1, "adjectives": 1, "prepositions": 1}


@cache
def tiny(switches: str) -> PCFG:
    return language("switches", switches=switches, **TINY)


@cache
def trees_of(switches: str) -> list[Tree]:
    """Derivations whose binarised symbols are spliced out."""
    sampler = Sampler(tiny(switches))
    return list(sampler.trees(sampler.draw(300, random_state(3, 4))))


#: of a parent and its children in any order
SWITCH_OF = {(parent, tuple(sorted(children))): switch for switch, parent, children, _ in phrases()}


def switch_of(node: Tree) -> int:
    """The switch that reverses a node, 0 for none; a word beside other children has a preterminal, its name quoted."""
    names = [child if isinstance(child, str) else child.label.strip("'") for child in node.children]
    return SWITCH_OF.get((node.label, tuple(sorted(names))), 0)


def reordered(tree: Tree | str, switches: str) -> list[str]:
    """The words of a derivation with the children of switched nodes reversed, node by node."""
    if isinstance(tree, str):
        return [tree]
    parts = [reordered(child, switches) for child in tree.children]
    if (switch := switch_of(tree)) and switches[switch - 1] == "1":
        parts.reverse()
    return [word for part in parts for word in part]


@pytest.mark.long
def test_all_have_the_same_entropy_lengths_and_words() -> None:
    entropy = derivational_entropy(tiny("000000"))
    lengths = tiny("000000").exact.length_pmf(20)
    for switches in ALL:
        grammar = tiny(switches)
        assert derivational_entropy(grammar) == pytest.approx(entropy, rel=1e-10)
        np.testing.assert_allclose(grammar.exact.length_pmf(20), lengths, atol=1e-12)
        assert set(grammar.vocabulary) == set(tiny("000000").vocabulary)
    assert len({tiny(switches).digest for switches in ALL}) == 64


@pytest.mark.long
@pytest.mark.parametrize("switches", ["111111", "011101", "100000", "010000", "001000", "000100", "000010", "000001"])
def test_bags_of_words_have_the_same_probability(switches: str) -> None:
    """The strings of a bag of words are all permutations of it; their probabilities sum to the same."""
    bags = {tuple(sorted(tree.leaves()[:-1])) for tree in trees_of("000000") if len(tree.leaves()) <= 7}
    assert len(bags) > 10
    for bag in bags:
        strings = [(*words, ".") for words in sorted(set(itertools.permutations(bag)))]
        sums = [np.exp(tiny(each).exact.string_log_probs(strings)).sum() for each in ("000000", switches)]
        assert sums[0] > 0.0
        assert sums[1] == pytest.approx(sums[0], rel=1e-10)


@pytest.mark.long
@given(st.sampled_from(ALL), st.sampled_from(ALL))
@settings(max_examples=20, deadline=None)
def test_a_switch_reverses_its_nodes_and_twice_is_as_before(switches: str, other: str) -> None:
    """Reordered derivations of 000000 are derivations of the other language, and the other way round."""
    there = [reordered(tree, switches) for tree in trees_of("000000")[:60]]
    assert (tiny(switches).exact.string_log_probs(there) > -math.inf).all()
    back = [reordered(tree, switches) for tree in trees_of(switches)[:60]]
    assert (tiny("000000").exact.string_log_probs(back) > -math.inf).all()
    if switches != other:
        assert not (tiny(other).exact.string_log_probs(there) > -math.inf).all()


def test_each_switch_has_nodes_to_reverse() -> None:
    found = Counter(switch_of(node) for tree in trees_of("000000")[:60] for node in tree.subtrees())
    assert all(found[number] > 5 for number in range(1, 7))


@pytest.mark.parametrize(
    ("name", "sentences", "wrong"),
    [
        (
            "japanese-order",
            ["Adj N ze N lo VT .", "N ze N P N lo VT .", "VI rul N ze N ze VI dak VC ."],
            "N ze VT N lo .",
        ),
        (
            "english-order",
            ["Adj N ze VT N lo .", "N ze VT N P N lo .", "N rul VI ze VC dak N ze VI ."],
            "N ze N lo VT .",
        ),
        (
            "spanish-order",
            ["N Adj ze VT N lo .", "N ze VT N P N lo .", "N rul VI ze VC dak N ze VI ."],
            "Adj N ze VI .",
        ),
    ],
)
def test_orders_are_those_of_the_languages(name: str, sentences: list[str], wrong: str) -> None:
    grammar = language(name, **TINY)
    word = {
        kind: next(grammar.vocabulary[w] for a, w in grammar.lexical if grammar.symbols[a].startswith(symbol))
        for kind, symbol in (
            ("Adj", "Adj"),
            ("P", "P"),
            ("N", "N-sg"),
            *((v, f"{v}-pres-sg") for v in ("VI", "VT", "VC")),
        )
    }
    texts = [[word.get(kind, kind) for kind in text.split()] for text in (*sentences, wrong)]
    *possible, impossible = grammar.exact.string_log_probs(texts)
    assert min(possible) > -math.inf == impossible


def test_verbs_agree_with_their_subjects() -> None:
    grammar = tiny("000000")
    of = {grammar.symbols[a]: grammar.vocabulary[w] for a, w in grammar.lexical}
    for number, other in (("sg", "pl"), ("pl", "sg")):
        for tense in ("past", "pres"):
            right, wrong = ([of[f"N-{number}"], "ze", of[f"VI-{tense}-{n}"], "."] for n in (number, other))
            assert grammar.log_prob(right) > -math.inf == grammar.log_prob(wrong)


def test_stems_and_words_are_all_different() -> None:
    assert len({stem(i) for i in range(STEMS)}) == STEMS
    largest = SwitchesSettings(nouns=1000, verbs=1000, adjectives=500, prepositions=100)
    assert largest.nouns + 3 * largest.verbs + largest.adjectives + largest.prepositions <= STEMS
    sizes = {"nouns": 30, "verbs": 20, "adjectives": 10, "prepositions": 5}
    assert len(language("switches", **sizes).vocabulary) == 2 * 30 + 12 * 20 + 10 + 5 + len(
        ["ze", "lo", "dak", "rul", "nem", "em", "ent", "."]
    )


@pytest.mark.parametrize("wrong", [11101, 0, "01110", "0111012", "01110a", "", True])
def test_switches_are_six_digits(wrong: Any) -> None:
    with pytest.raises(InputError, match="language switches: switches"):
        language("switches", switches=wrong)


def test_probabilities_of_short_sentences_are_products_of_the_weights() -> None:
    """Weights of a noun phrase sum to 4.2, with coordination of two 4.3 in the plural; of a verb phrase, to 3."""
    of = {tiny("000000").symbols[a]: tiny("000000").vocabulary[w] for a, w in tiny("000000").lexical}
    noun, verb, adjective, preposition = of["N-sg"], of["VI-pres-sg"], of["Adj"], of["P"]
    alone = 0.5 * 0.5 / 3.0 * 0.98  # number, tense and kind of the verb, no coordination
    expected = {
        f"{noun} ze {verb} .": alone / 4.2,
        f"em ze {verb} .": alone / 4.2,
        f"{adjective} {noun} ze {verb} .": alone / 4.2 * 0.98,
        f"em {preposition} {noun} ze {verb} .": alone * 0.2 / 4.2 * 0.5 / 4.2 / 4.2,
        f"{noun} ze {verb} nem {verb} .": alone / 4.2 * 0.02 * 0.98,
        f"ent ze {of['VI-past-pl']} .": alone / 4.3,
        f"em nem ent ze {of['VI-past-pl']} .": alone * 0.025 / 4.3 / 4.2 / 4.3,
        f"em ze {noun} lo {of['VT-past-sg']} .": alone / 4.2 * 0.5 / 4.2,
    }
    scores = tiny("000000").exact.string_log_probs([text.split() for text in expected])
    assert np.exp(scores) == pytest.approx(list(expected.values()), rel=1e-10)
