"""Centre embedding against right branching: the same lengths, words and entropy; agreement nested or local."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_inference import all_strings, rules_of

from truesource.generator.sampler import Sampler
from truesource.grammar.building import zipf
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.languages import parse
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import random_state

shares = st.floats(0.0, 1.0).map(lambda p: round(p, 3))


def both(**settings: float) -> tuple[PCFG, PCFG]:
    """The languages that branch in the centre and on the right."""
    return language("centre-embedding", **settings), language("centre-embedding", branching="right", **settings)


def clauses(sentence: list[str]) -> list[tuple[str, str]]:
    """Noun and verb of each clause of a centre-embedded sentence, the outermost first."""
    nouns, verbs = sentence[: len(sentence) // 3 * 2 + 1 : 2], sentence[len(sentence) // 3 * 2 + 1 :]
    assert sentence[1 : 2 * len(nouns) - 1 : 2] == ["that"] * (len(nouns) - 1)
    return list(zip(nouns, reversed(verbs), strict=True))


def to_the_right(pairs: list[tuple[str, str]]) -> list[str]:
    """The same clauses one after the other."""
    return [*pairs[0], *(word for noun, verb in pairs[1:] for word in (noun, "that", verb))]


@pytest.mark.long
@given(st.integers(0, 12), shares, shares, st.integers(1, 5), st.integers(1, 5))
def test_lengths_words_and_entropy_are_the_same(depth: int, more: float, plural: float, nouns: int, verbs: int) -> None:
    settings = {"depth": depth, "more": more, "plural": plural, "nouns": nouns, "verbs": verbs}
    centre, right = both(**settings)
    lengths = centre.exact.length_pmf(3 * depth + 3)
    assert lengths == pytest.approx(right.exact.length_pmf(3 * depth + 3), abs=1e-12)
    expected = np.zeros(3 * depth + 4)
    expected[2::3] = [more**j * (1 - more if j < depth else 1) for j in range(depth + 1)]
    assert lengths == pytest.approx(expected, abs=1e-12)
    words = [dict(zip(each.vocabulary, each.exact.expected_words, strict=True)) for each in (centre, right)]
    assert words[0] == pytest.approx(words[1], rel=1e-10)
    mean_clauses = sum(more**j for j in range(depth + 1))
    assert derivational_entropy(centre) == pytest.approx(derivational_entropy(right), rel=1e-10, abs=1e-10)
    choice = sum(-p * math.log(p) for p in (more, 1 - more) if p > 0)
    number = sum(-p * math.log(p) for p in (plural, 1 - plural) if p > 0)
    word = sum(-p * math.log(p) for size in (nouns, verbs) for p in zipf(size, 1.0))
    entropy = sum(more**j for j in range(depth)) * choice + mean_clauses * (number + word)
    assert derivational_entropy(centre) == pytest.approx(entropy, rel=1e-10, abs=1e-10)
    for grammar, branching in ((centre, "centre"), (right, "right")):
        assert parse("centre-embedding", {**settings, "branching": branching})[1].n_rules() >= grammar.n_rules


def test_a_sentence_has_the_probability_of_its_clauses_in_both_languages() -> None:
    centre, right = both(depth=5, more=0.8, plural=0.3, zipf=1.2)
    noun, verb = zipf(50, 1.2), zipf(20, 1.2)
    sampler = Sampler(centre, None)
    sentences = sampler.sentences(sampler.draw(60, random_state(1, 2)))
    expected = []
    for sentence in sentences:
        pairs = clauses(sentence)
        p = 0.8 ** (len(pairs) - 1) * (0.2 if len(pairs) < 6 else 1.0)
        for n, v in pairs:
            assert n.endswith("s") != v.endswith("s")
            p *= 0.3 if n.endswith("s") else 0.7
            p *= noun[int(n.strip("nous")) - 1] * verb[int(v.strip("verbs")) - 1]
        expected.append(p)
    assert {len(clauses(sentence)) for sentence in sentences} == {1, 2, 3, 4, 5, 6}
    assert np.exp(centre.exact.string_log_probs(sentences)) == pytest.approx(expected, rel=1e-10)
    moved = [to_the_right(clauses(sentence)) for sentence in sentences]
    assert np.exp(right.exact.string_log_probs(moved)) == pytest.approx(expected, rel=1e-10)


def test_the_languages_hold_the_same_clauses_and_no_other_strings() -> None:
    centre, right = (
        {string: p for table in all_strings(rules_of(grammar), 8)["Clause-0"] for string, p in table.items()}
        for grammar in both(depth=2, nouns=1, verbs=1, plural=0.4)
    )
    assert len(centre) == 2 + 4 + 8
    assert right == pytest.approx({tuple(to_the_right(clauses(list(s)))): p for s, p in centre.items()}, rel=1e-10)
    assert sum(centre.values()) == pytest.approx(1.0, abs=1e-12)


def test_verbs_agree_in_reverse_order_where_clauses_are_nested() -> None:
    grammar = language("centre-embedding", depth=3, verbs=2)
    nouns = ["noun1", "noun2s", "noun1s", "noun2"]
    prefix = " that ".join(nouns).split()
    for noun in reversed(nouns):
        found = dict(zip(grammar.vocabulary, grammar.next_token(prefix).probability, strict=True))
        right, wrong = (["verb1", "verb2"], ["verb1s", "verb2s"])[:: 1 if noun.endswith("s") else -1]
        assert sum(found[word] for word in right) == pytest.approx(1.0, rel=1e-10)
        assert [found[word] for word in wrong] == [0.0, 0.0]
        prefix.append(right[1])
    assert grammar.next_token(prefix).stop == pytest.approx(1.0, rel=1e-10)
