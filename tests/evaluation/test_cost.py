"""What long sentences will cost, and leaving them out."""

from __future__ import annotations

import pytest

from truesource.evaluation.core.long_sentences import LongSentences, long_sentences
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import random_state

pytestmark = pytest.mark.long

GRAMMAR = PCFG.from_text("S -> S S 0.3 | A 0.2 | a 0.5\nA -> b 0.4 | c 0.6")


def test_sentences_of_ordinary_length_cost_nothing_to_speak_of() -> None:
    assert long_sentences(GRAMMAR, [["a"] * 200, ["b"]]) is None


def test_the_cost_of_long_sentences_is_measured() -> None:
    sentences = [["a"] * 300, ["b"] * 2000, ["a"]]
    found = long_sentences(GRAMMAR, sentences)
    assert found is not None
    assert (found.count, found.longest) == (2, 2000)
    assert found.seconds > 0.0
    assert found.memory > 2 * 8 * 2 * 2000 * 2001 / 2  # inside and outside charts of two symbols
    alone = long_sentences(GRAMMAR, sentences, LengthRange(1, 9), masked=False)
    assert alone is not None
    assert alone.memory < found.memory


def test_a_linear_grammar_costs_as_much_as_its_sentences_are_long() -> None:
    grammar = PCFG.from_text("S -> A S 0.9 | a 0.1\nA -> a 1")
    one, ten = (long_sentences(grammar, [["a"] * n]) for n in (10_000, 100_000))
    assert one is not None and ten is not None
    assert ten.memory == 10 * one.memory < 100e6
    assert ten.seconds < 60.0  # by charts, years


def test_a_language_of_few_cells_costs_about_as_much_as_its_sentences_are_long() -> None:
    deep = language("cfg3b")
    sampler = Sampler(deep, LengthRange(300, 432))
    (sentence,) = sampler.sentences(sampler.draw(1, random_state(1)))
    words = deep.encode(sentence).reshape(-1, 1)
    assert [deep.exact.charts().growth(words, outside=masked) for masked in (False, True)] == [1, 1]
    assert deep.exact.charts().growth(words, LengthRange(300, 432)) == 1
    assert deep.exact.charts().growth(words[::-1]) == 1
    assert GRAMMAR.exact.charts().growth(GRAMMAR.encode(["a"] * 300).reshape(-1, 1)) == 3
    found = long_sentences(deep, [sentence])
    assert found is not None
    assert found.seconds > 0.0


@pytest.mark.parametrize(("seconds", "words"), [(50.0, "about 50 s"), (600.0, "10 min"), (36000.0, "10.0 h")])
def test_the_cost_reads_well(seconds: float, words: str) -> None:
    text = str(LongSentences(2, 3000, seconds, 3_200_000_000))
    assert text.startswith("2 sentences have more than 200 words, the longest 3,000: ")
    assert words in text
    assert "3.2 GB" in text
