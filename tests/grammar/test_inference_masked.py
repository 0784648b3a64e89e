"""Masked probabilities against substitution of every word."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_grammars import cases
from reference_inference import joint, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

Case = tuple[PCFG, list[list[str]]]


@pytest.mark.long
@given(cases())
def test_masked_is_substitution_of_every_word(case: Case) -> None:
    pcfg, (sentence,) = case
    rules = rules_of(pcfg)
    scores = pcfg.exact.masked_log_probs([sentence])[0]
    assert scores.shape == (len(sentence),)
    for i, word in enumerate(sentence):
        parts = [joint(rules, [*sentence[:i], w, *sentence[i + 1 :]]) for w in pcfg.vocabulary]
        if not any(parts):
            assert scores[i] == -np.inf
            with pytest.raises(InputError, match=f"no word fits position {i}"):
                pcfg.masked(sentence, i)
            continue
        found = pcfg.masked(sentence, i)
        np.testing.assert_allclose(found, np.array(parts) / math.fsum(parts), rtol=1e-10, atol=0.0)
        truth = found[pcfg.word_ids[word]] if word in pcfg.word_ids else 0.0
        assert math.exp(scores[i]) == pytest.approx(truth, rel=1e-12, abs=0.0)


@pytest.mark.long
@given(cases(), st.integers(0, 3))
def test_what_stands_under_the_mask_does_not_matter(case: Case, at: int) -> None:
    pcfg, (sentence,) = case
    i = at % len(sentence)
    if joint(rules_of(pcfg), [*sentence[:i], None, *sentence[i + 1 :]]) == 0.0:
        return
    wanted = pcfg.masked(sentence, i)
    assert wanted.sum() == pytest.approx(1.0, rel=1e-12)
    for word in ("never-seen", *pcfg.vocabulary):
        found = pcfg.masked([*sentence[:i], word, *sentence[i + 1 :]], i)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=0.0)


@pytest.mark.long
@given(cases(), st.integers(0, 2), st.integers(0, 2))
def test_a_length_condition_changes_no_masked_probability(case: Case, below: int, above: int) -> None:
    """The ratio of *conditioned* string probabilities is the same distribution."""
    pcfg, (sentence,) = case
    n = len(sentence)
    if joint(rules_of(pcfg), [None] * n) == 0.0:
        return
    lengths = LengthRange(max(1, n - below), n + above)
    for i in range(n):
        strings = [[*sentence[:i], w, *sentence[i + 1 :]] for w in pcfg.vocabulary]
        parts = np.exp(pcfg.exact.string_log_probs(strings, lengths))
        if parts.sum() > 0.0:
            np.testing.assert_allclose(pcfg.masked(sentence, i), parts / parts.sum(), rtol=1e-10, atol=0.0)


def test_masked_over_unary_cycles_counts_each_derivation_once() -> None:
    """A one-token span under S -> A -> S chains: the sum runs over preterminal slots, not over every symbol."""
    grammar = PCFG.from_text("S -> A 0.5 | S S 0.2 | a 0.3\nA -> S 0.4 | B 0.3 | b 0.3\nB -> a 0.5 | b 0.5")
    # U[S,S] = 1/(1-0.2): a by S directly, or down to B; b by A or B
    a, b = 0.3 + 0.5 * 0.3 * 0.5, 0.5 * (0.3 + 0.3 * 0.5)
    found = dict(zip(grammar.vocabulary, grammar.masked(["a"], 0), strict=True))
    assert found["a"] == pytest.approx(a / (a + b), rel=1e-12)


def test_masked_of_a_long_sentence_neither_underflows_nor_depends_on_its_length() -> None:
    grammar = PCFG.from_text("S -> S S 0.3 | a 0.4 | b 0.3")
    scores = grammar.exact.masked_log_probs([["a", "b"] * 100])[0]
    np.testing.assert_allclose(np.exp(scores), [4 / 7, 3 / 7] * 100, rtol=1e-11)
    found = dict(zip(grammar.vocabulary, grammar.masked(["a"] * 100 + ["never-seen"] + ["b"] * 99, 100), strict=True))
    assert found["a"] == pytest.approx(4 / 7, rel=1e-11)


@pytest.mark.parametrize("position", [-1, 2])
def test_a_position_outside_the_sentence_is_refused(position: int) -> None:
    with pytest.raises(InputError, match="outside a sentence of 2 tokens"):
        PCFG.from_text("S -> S S 0.3 | a 0.7").masked(["a", "a"], position)
