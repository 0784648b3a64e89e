"""Posteriors of constituents for every word at a position, against those of each changed sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from agreement_grammar import agreement_grammar
from hypothesis import given, settings
from hypothesis import strategies as st
from random_grammars import small_pcfgs
from reference_inference import all_strings, derivations, rules_of

from truesource.evaluation.pairs.word_posteriors import WordPosteriors
from truesource.grammar.inference.posterior import posterior
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError


def check(pcfg: PCFG, words: Sequence[str], at: int, begin: int, end: int) -> None:
    found = WordPosteriors(posterior(pcfg, words), at)
    for label in dict.fromkeys(pcfg.labels):
        probs = found.label_probs(label, begin, end)
        assert probs.shape == (len(pcfg.vocabulary),)
        for word, p in zip(pcfg.vocabulary, probs.tolist(), strict=True):
            changed = [*words[:at], word, *words[at + 1 :]]
            if pcfg.log_prob(changed) == -math.inf:
                assert math.isnan(p)
            else:
                own = posterior(pcfg, changed).label_probs(begin, end).get(label, 0.0)
                assert p == pytest.approx(own, abs=1e-10)


@pytest.mark.long
@given(small_pcfgs(), st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=60)
def test_every_word_is_as_the_changed_sentence(pcfg: PCFG, random: Any, merged: bool) -> None:
    """With ``merged``, several symbols share a label, so that nodes of one label stand above each other."""
    if merged:
        pcfg = replace(pcfg, labels=tuple("XY"[i % 2] for i in range(len(pcfg.symbols))))
    words = random.choice([s for table in all_strings(rules_of(pcfg), 4)[pcfg.symbols[pcfg.start]] for s in table])
    at = random.randrange(len(words))
    begin, end = random.randint(0, at), random.randint(at + 1, len(words))
    check(pcfg, words, at, begin, end)


@pytest.mark.long
def test_a_long_sentence_neither_under_nor_overflows() -> None:
    toy = agreement_grammar()
    more = ["of", "the", "man", "in", "this", "cat", "with", "these", "dogs"]
    words = ["the", "dog", *more * 50, "sees", "a", "cat", "in", "a", "man"]
    found = posterior(toy, words)
    assert found.log_prob < -750.0  # e^-750 is no float
    n, numbers = len(words), toy.word_ids
    probs = WordPosteriors(found, n - 3).label_probs("NP", n - 5, n)
    own = found.label_probs(n - 5, n)["NP"]
    assert probs[numbers["in"]] == pytest.approx(own, abs=1e-10)
    changed = posterior(toy, [*words[: n - 3], "of", *words[n - 2 :]]).label_probs(n - 5, n)["NP"]
    assert probs[numbers["of"]] == pytest.approx(changed, abs=1e-10)
    assert changed > 0.9 > 0.1 > own


@pytest.mark.long
def test_against_all_derivations_by_hand() -> None:
    toy = agreement_grammar()
    words = ("the", "dog", "sees", "a", "cat", "in", "the", "man")
    probs = WordPosteriors(posterior(toy, words), 5).label_probs("NP", 3, 8)
    for word in ("of", "with", "in"):
        trees = derivations(rules_of(toy), (*words[:5], word, *words[6:]))
        total = math.fsum(p for _, p in trees)
        noun = math.fsum(p for tree, p in trees if "(NPo (NPsg (NPsg (DTsg a) (NN cat)) (PPn" in str(tree))
        assert probs[toy.word_ids[word]] == pytest.approx(noun / total, abs=1e-10)
    assert np.isnan(probs[toy.word_ids["dog"]])


@pytest.mark.parametrize(
    ("at", "label", "span", "message"),
    [
        (3, "NP", (0, 3), "position 3 is outside a sentence of 3 tokens"),
        (2, "NP", (0, 2), r"\(0, 2\) is no span around position 2 of 3 tokens"),
        (1, "NP", (0, 4), r"\(0, 4\) is no span around position 1 of 3 tokens"),
        (1, "QP", (0, 2), "the grammar has no label 'QP'"),
    ],
)
def test_what_is_not_there_is_told(at: int, label: str, span: tuple[int, int], message: str) -> None:
    found = posterior(agreement_grammar(), ["the", "dog", "sleeps"])
    with pytest.raises(InputError, match=message):
        WordPosteriors(found, at).label_probs(label, *span)
