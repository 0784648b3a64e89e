"""The word-level tokeniser: order, unknown words, special tokens, agreement with our own look-up."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.tokenizer import SPECIALS, build_tokenizer
from truesource.lmtrain.word_vocabulary import WordVocabulary

TEXT = [["b", "a", "b"], ["c", "a", "-LRB-"], ["``", "b"]]


def test_frequent_words_come_first_and_ties_in_order_of_code_points() -> None:
    vocabulary = WordVocabulary(build_tokenizer(TEXT))
    assert vocabulary.words == ("b", "a", "-LRB-", "``", "c")
    assert [vocabulary.tokens[i] for i in range(5)] == list(SPECIALS)
    assert len(vocabulary) == 10


def test_rare_words_are_unknown() -> None:
    vocabulary = WordVocabulary(build_tokenizer(TEXT, min_count=2))
    assert vocabulary.words == ("b", "a")
    assert vocabulary.encode([["a", "c", "zzz"]])[0].tolist() == [6, vocabulary.unk, vocabulary.unk]


def test_a_special_token_as_a_word_is_an_unknown_word() -> None:
    vocabulary = WordVocabulary(build_tokenizer(TEXT))
    assert vocabulary.encode([list(SPECIALS)])[0].tolist() == [vocabulary.unk] * 5


@pytest.mark.parametrize("word", [*SPECIALS, "x<mask>", "", "a b", "a\u00a0b", "\t"])
def test_words_that_cannot_be_kept_are_refused(word: str) -> None:
    with pytest.raises(InputError, match="word"):
        build_tokenizer([["fine", word]])


@pytest.mark.parametrize(("sentences", "min_count"), [([], 1), ([[]], 1), ([["a"]], 2)])
def test_an_empty_vocabulary_is_refused(sentences: list[list[str]], min_count: int) -> None:
    with pytest.raises(InputError, match="word"):
        build_tokenizer(sentences, min_count=min_count)


_words = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=6).filter(
    lambda w: w.split() == [w] and not any(s in w for s in SPECIALS)
)


@pytest.mark.long
@given(st.lists(st.lists(_words, min_size=1, max_size=6), min_size=1, max_size=6))
def test_the_tokeniser_and_the_look_up_agree(sentences: list[list[str]]) -> None:
    tokenizer = build_tokenizer(sentences)
    vocabulary = WordVocabulary(tokenizer)
    sentences = [*sentences, ["unheard-of", *sentences[0]]]
    for sentence, ids in zip(sentences, vocabulary.encode(sentences), strict=True):
        assert tokenizer(" ".join(sentence), add_special_tokens=False)["input_ids"] == ids.tolist()


def test_saved_and_loaded_it_adds_the_marks_of_its_objective(tmp_path: Path) -> None:
    for objective, expected in (("causal", [2, 5, 1]), ("masked", [2, 5, 1, 3])):
        folder = tmp_path / objective
        build_tokenizer(TEXT, objective=objective).save_pretrained(folder)  # type: ignore[arg-type]
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        assert tokenizer("b zzz")["input_ids"] == expected
        assert tokenizer.decode([5, 6]) == " b a"
        assert WordVocabulary(tokenizer).words == ("b", "a", "-LRB-", "``", "c")
