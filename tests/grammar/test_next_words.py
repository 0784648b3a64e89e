"""Next words of many sentences at once, against those of one beginning at a time."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import cases, length_ranges

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.next_words import next_words
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth, process

TWO = PCFG.from_text("S -> S S 0.3 | a 0.4 | b 0.3")
ORDER = PCFG.from_text("S -> A B 1.0\nA -> a 1.0\nB -> b 0.5 | c 0.5")


def check(truth: Truth, sentences: list[list[str]], lengths: LengthRange | None) -> None:
    """Every row is that of its beginning alone."""
    found = truth.next_words(sentences, lengths)
    assert found.words == truth.vocabulary
    assert found.lengths.tolist() == [len(sentence) for sentence in sentences]
    assert found.probability.dtype == np.float64
    assert found.probability.shape == (*found.possible.shape, len(truth.vocabulary) + 1)
    for i, sentence in enumerate(sentences):
        for j in range(found.possible.shape[1]):
            row = found.probability[i, j]
            assert bool(found.possible[i, j]) == row.any()
            if j > len(sentence):
                assert not row.any()
                continue
            try:
                one = truth.next_token(sentence[:j], lengths)
            except InputError:
                assert not row.any()
                continue
            np.testing.assert_allclose(row, [*one.probability, one.stop], rtol=0, atol=1e-12)
            assert not row.any() or row.sum() == pytest.approx(1.0, rel=1e-10)


@pytest.mark.long
@given(cases(most=4), st.one_of(st.none(), length_ranges(5)), st.data())
def test_rows_are_those_of_one_beginning(
    case: tuple[PCFG, list[list[str]]], lengths: LengthRange | None, data: st.DataObject
) -> None:
    pcfg, sentences = case
    if lengths is not None:
        assume(pcfg.exact.length_pmf(lengths.high)[lengths.low :].sum() > 0.0)
    broken_off = [sentence[: data.draw(st.integers(0, len(sentence)))] for sentence in sentences]
    check(pcfg, [*sentences, *broken_off], lengths)


@pytest.mark.parametrize("lengths", [None, LengthRange(2, 6)])
@pytest.mark.parametrize("name", ["shuffle-dyck:k=2,depth=2,p_open=0.6", "copy:vocabulary=2,longest=3,p=0.6"])
def test_a_process_has_them_too(name: str, lengths: LengthRange | None) -> None:
    truth = process(name)
    words = (*truth.vocabulary, "elsewhere")
    check(truth, [list(text) for n in range(4) for text in itertools.product(words, repeat=n)], lengths)


@pytest.mark.long
@given(cases(most=4))
def test_numbers_are_words(case: tuple[PCFG, list[list[str]]]) -> None:
    pcfg, sentences = case
    known = [[word for word in sentence if word in pcfg.word_ids] for sentence in sentences]
    table = np.full((len(known), max(map(len, known), default=0) + 1), -100)
    for row, sentence in zip(table, known, strict=True):
        row[: len(sentence)] = pcfg.encode(sentence)
        assert pcfg.decode(pcfg.encode(sentence)) == sentence
    wanted = pcfg.next_words(known)
    for given_ in (table, torch.from_numpy(table), table.astype(np.int16)):
        found = next_words(pcfg, given_)
        np.testing.assert_array_equal(found.probability, wanted.probability)
        np.testing.assert_array_equal(found.lengths, wanted.lengths)


def test_after_an_impossible_word_there_is_no_next_word() -> None:
    found = ORDER.next_words([["a", "a", "b"], ["a", "c", "b"], ["elsewhere"], ["a"]])
    assert found.possible.tolist() == [
        [True, True, False, False],
        [True, True, True, False],
        [True, False, False, False],
        [True, True, False, False],
    ]
    assert not found.probability[~found.possible].any()
    assert repr(found) == "NextWords(4 sentences of up to 3 words, 3 words)"


def test_no_sentences_are_an_empty_table() -> None:
    assert TWO.next_words([]).probability.shape == (0, 1, 3)


@pytest.mark.parametrize(
    ("sentences", "says"),
    [
        ([["a b"]], "'a b' is several words"),
        ([["a"], [1, 2]], "1 in it is not a word"),
        (np.array([[0, -1, 1]]), "row 1 has padding before a word"),
        (np.array([[0, 2]]), "there is no word number 2; use numbers 0 to 1"),
        (np.array([[0.0]]), "word numbers are a matrix of integers, got float64 of shape"),
        (np.array([0]), r"got int64 of shape \(1,\)"),
    ],
)
def test_other_things_are_refused(sentences: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        TWO.next_words(sentences)


@pytest.mark.parametrize("ids", [[2], [-1], [[0]], [0.5]])
def test_only_numbers_of_words_are_decoded(ids: Any) -> None:
    for truth in (TWO, process("shuffle-dyck:k=1,depth=3")):
        with pytest.raises(InputError, match="word number"):
            truth.decode(ids)


def test_a_table_beyond_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.grammar.support.room.memory", lambda: 100)
    with pytest.raises(InputError, match="give fewer sentences at a time"):
        TWO.next_words([["a", "b"]] * 10)


@pytest.mark.parametrize("lengths", [None, LengthRange(6, 14)])
def test_texts_that_are_lengthened_to_one_batch_keep_their_values(lengths: LengthRange | None) -> None:
    """Of 8 to 10 words they are computed together, those broken off and those with an unknown word too."""
    pcfg = PCFG.from_text("S -> S S 0.3 | A S 0.1 | 'a' 0.4 | 'b' 0.2\nA -> 'a' 0.5 | 'c' 0.5")
    words = ["a", "b", "c", "a", "a", "b", "c", "b", "a", "a"]
    check(pcfg, [words, words[:9], words[:8], ["a"] * 8, [*words[:4], "moo", *words[4:8]], words[:6]], lengths)
    check(process("shuffle-dyck", k=2, depth=3), [["(1", "(2", "1)", "2)", "(1"], ["(1", "(2", "1)", "2)"]], None)
