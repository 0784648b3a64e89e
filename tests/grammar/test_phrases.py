"""The lowest phrase over each word, against all derivations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from random_grammars import cases
from reference_inference import derivations, rules_of

from truesource.grammar.inference.phrases import lowest_phrases, parents, phrase_of
from truesource.grammar.inference.posterior import posterior
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.tree import Tree

Case = tuple[PCFG, list[list[str]]]


def over_words(tree: Tree, above: str | None = None) -> list[str | None]:
    """The symbol right above each symbol that makes a word; None where that is the root."""
    if tree.is_preterminal:
        return [above]
    return [found for child in tree.children if isinstance(child, Tree) for found in over_words(child, tree.label)]


@pytest.mark.long
@given(cases(max_size=4, max_symbols=4, unary_cycles=False))
def test_parents_are_sums_over_derivations(case: Case) -> None:
    pcfg, (sentence,) = case
    found = derivations(rules_of(pcfg), sentence)
    total = math.fsum(p for _, p in found)
    assume(total > 0.0)
    wanted = np.zeros((len(sentence), len(pcfg.symbols)))
    for tree, p in found:
        for t, symbol in enumerate(over_words(tree)):
            if symbol is not None:
                wanted[t, pcfg.symbol_ids[symbol]] += p / total
    own = posterior(pcfg, sentence)
    np.testing.assert_allclose(parents(own), wanted, rtol=0.0, atol=1e-11)
    names, table = lowest_phrases(own)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=0.0, atol=1e-11)
    assert (table >= 0.0).all() and set(names) == set(pcfg.labels)


@pytest.mark.long
def test_long_sentences_of_a_language_with_phrases() -> None:
    grammar = language("english", size="small")
    sentence = ["there", "is", "a", "rich", "girl", "."]
    names, table = lowest_phrases(posterior(grammar, sentence))
    best = [names[i] for i in table.argmax(axis=1)]
    assert best[2:5] == ["NP", "NP", "NP"] and best[5] == "S"
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=1e-10)
    long = PCFG.from_text("S -> S S 0.4 | 'a' 0.6")
    rows = parents(posterior(long, ["a"] * 80))
    np.testing.assert_allclose(rows, 1.0, atol=1e-9)


@pytest.mark.parametrize(("label", "phrase"), [("NP", "NP"), ("@NP", "NP"), ("@NP[DT][JJ]", "NP"), ("@", "@")])
def test_nodes_of_binarisation_belong_to_their_phrase(label: str, phrase: str) -> None:
    assert phrase_of(label) == phrase
