"""Samples of models beside a text: the words that count."""

from __future__ import annotations

import pytest

from truesource.evaluation.tendencies import TendencySettings
from truesource.evaluation.tendencies.decoding_schemes import ModelSample, compare
from truesource.evaluation.tendencies.truth import TrueText, symbols
from truesource.grammar.pcfg import PCFG

pytestmark = pytest.mark.long

TOY = PCFG.from_text("S -> N V [0.7]\nS -> S S [0.3]\nN -> 'dog' [0.6]\nN -> 'emu' [0.4]\nV -> 'runs' [1.0]\n")
TEXT = [["dog", "runs"], ["emu", "runs", "dog", "runs"], ["dog", "runs"]] * 10
MADE = [["dorg", "runs"], ["emu", "runns", "emu", "runs"], ["dog", "runs"]] * 10
FAST = TendencySettings({"symbols": symbols}, chance=9, permutations=9, draws=9)


def test_words_that_the_grammar_lacks_are_words_of_a_text() -> None:
    truth = TrueText(
        TOY, None, vocabulary={"dog", "runs", "<unk>"}
    )  # the models do not know the word emu of the grammar
    found = compare([ModelSample("net", "ancestral", MADE, 0, 0)], truth, FAST, TEXT)["ancestral"].findings["net"]
    assert found["types_all"].score.value == len({"dog", "runs", "dorg", "runns"})
    assert found["unknown_share"].score.value == 20 / 80
    assert found["unigram_linf"].score.value == 30 / 80 - 10 / 80  # dog
