"""Rules with their weights in front, in the notations of Eisner, Stolcke and Johnson."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from random_grammars import small_pcfgs

from truesource.grammar.formats.weight_first import format_weight_first, parse_weight_first
from truesource.grammar.pcfg import PCFG
from truesource.grammar.read_options import ReadOptions
from truesource.grammar.support.errors import InputError

EISNER = """
# a grammar
1 ROOT S .
3\tS\tNP VP   # two thirds of nothing
1 NP Det N
2 NP they
1 VP V NP and V
1 Det the
1 N dog
3 N cat's
1 V see
"""


def test_weights_are_divided_and_names_without_rules_are_words(tmp_path: Path) -> None:
    (tmp_path / "english.gr").write_text(EISNER)
    pcfg = PCFG.load(tmp_path / "english.gr")
    sentence = ["they", "see", "the", "cat's", "and", "see", "."]
    assert math.exp(pcfg.log_prob(sentence)) == pytest.approx(2 / 3 * 1 / 3 * 3 / 4, rel=1e-14)
    assert pcfg.symbols[pcfg.start] == "ROOT"
    assert pcfg.meta["normalised"]["symbols"] == 3


@pytest.mark.parametrize(
    "text",
    [
        "0.4 S -> S S\n0.6 S -> a",
        "2 S --> S S\n3 S --> a",
        "2 7.5 S --> S S\n3 1 S --> a",
        "4e-1 S → S S\n.6 S → 'a'",
        '4e-1 S S S\n.6 S "a"',
    ],
)
def test_every_notation(text: str) -> None:
    pcfg = PCFG.of(parse_weight_first(text))
    assert math.exp(pcfg.log_prob(["a", "a"])) == pytest.approx(0.4 * 0.36, rel=1e-14)


@pytest.mark.long
@given(small_pcfgs())
def test_what_is_written_is_read_back(pcfg: PCFG) -> None:
    again = PCFG.of(parse_weight_first(format_weight_first(pcfg)))
    for length in (1, 2, 3):
        for word in pcfg.vocabulary:
            sentence = [word] * length
            assert again.log_prob(sentence) == pytest.approx(pcfg.log_prob(sentence), rel=1e-12, abs=1e-12)


def test_words_that_look_like_symbols_or_signs_are_quoted() -> None:
    pcfg = PCFG.from_text("S -> 'S' 0.25 | 'ε' 0.25 | '#' 0.25 | \"it's\" 0.25")
    again = PCFG.of(parse_weight_first(format_weight_first(pcfg)))
    assert set(again.vocabulary) == set(pcfg.vocabulary)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rules"),
        ("1 S", "no children; write ε"),
        ("1 S a\nx S b", r"expecting a weight and a rule such as 2 S NP VP, got 'x S b' \(toy:2\)"),
        ("-1 S a", "expecting a weight"),
        ("1e999 S a", "is too large"),
        ("1 A B\n1 C B\n1 B x", r"candidates: A, C"),
    ],
)
def test_bad_rules_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_weight_first(text, path="toy")


@pytest.mark.long
def test_the_start_can_be_given() -> None:
    pcfg = PCFG.of(parse_weight_first("1 A B\n1 C B B\n1 B x", ReadOptions(start="C")))
    assert pcfg.log_prob(["x", "x"]) == 0.0


@pytest.mark.parametrize(
    "text", ["<A B> -> a 1", "S -> ROOT 1\nROOT -> a 1", "S -> 'S' 0.5 | '\"\\'' 0.5", "S -> 'a\\\\' 1"]
)
def test_what_cannot_be_written_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        format_weight_first(PCFG.from_text(text))
