"""Subword tokenisers: the text comes back, training is repeatable, what cannot be spelt is flagged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.pieces.marking import MARKER
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary, encoder_of, is_ours
from truesource.lmtrain.subwords import build_subword_tokenizer, make_tokenizer
from truesource.lmtrain.tokenizer import SPECIALS
from truesource.lmtrain.word_vocabulary import WordVocabulary

WORDS = [
    "the",
    "theatre",
    "cat",
    "cats",
    "-LRB-",
    "PRP$",
    "``",
    "''",
    "naïve",
    "日本",
    "e\u0301",
    "ﬁn",
    "don't",
    "a",
    "…",
]
RNG = np.random.default_rng(0)
TEXT = [[WORDS[i] for i in RNG.integers(len(WORDS), size=8)] for _ in range(60)]
KINDS = ["bpe", "unigram"]
TOKENIZERS: dict[str, PreTrainedTokenizerFast] = {
    kind: build_subword_tokenizer([WORDS, *TEXT], kind, 70)  # type: ignore[arg-type]
    for kind in KINDS
}
CHARACTERS = sorted(set("".join(WORDS)))


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_come_first_and_every_word_begins_with_the_marker(kind: str) -> None:
    vocabulary = SubwordVocabulary(TOKENIZERS[kind])
    assert [vocabulary.tokens[i] for i in range(5)] == list(SPECIALS)
    assert (vocabulary.pad, vocabulary.unk, vocabulary.bos, vocabulary.eos, vocabulary.mask) == (0, 1, 2, 3, 4)
    assert len(vocabulary) <= 70
    assert any(len(piece) > 2 and not piece.startswith(MARKER) for piece in vocabulary.tokens.values())
    pieces = vocabulary.align([WORDS])
    first = np.zeros(len(pieces.ids), dtype=bool)
    first[pieces.starts[:-1]] = True
    assert np.array_equal(vocabulary.begins[pieces.ids], first)
    assert np.flatnonzero(vocabulary.begins).tolist() == [
        i for i, piece in vocabulary.tokens.items() if piece.startswith(MARKER) or piece == "<eos>"
    ]


@pytest.mark.long
@settings(max_examples=80)
@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.lists(st.one_of(st.sampled_from(WORDS), st.text(CHARACTERS, min_size=1, max_size=8)), max_size=6)))
def test_the_text_comes_back(kind: str, sentences: list[list[str]]) -> None:
    """From our pieces, and from the saved tokeniser called on the text, which cuts it in the same way."""
    tokenizer, vocabulary = TOKENIZERS[kind], SubwordVocabulary(TOKENIZERS[kind])
    pieces = vocabulary.align(sentences)
    assert not pieces.unreadable.any()
    assert pieces.words.tolist() == [len(sentence) for sentence in sentences]
    assert pieces.counts.sum() == len(pieces.ids)
    for sentence, row in zip(sentences, vocabulary.encode(sentences), strict=True):
        assert vocabulary.join(row) == sentence
        assert tokenizer.decode(row.tolist()) == "".join(f" {word}" for word in sentence)
        assert tokenizer(" ".join(sentence), add_special_tokens=False)["input_ids"] == row.tolist()


_any_word = st.text(min_size=1, max_size=6).filter(
    lambda w: w.split() == [w] and MARKER not in w and "\x00" not in w and not any(s in w for s in SPECIALS)
)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.lists(_any_word, min_size=1, max_size=5), min_size=1, max_size=5))
def test_any_words_of_the_train_split_come_back(kind: str, sentences: list[list[str]]) -> None:
    size = 5 + 2 + len(set("".join(w for s in sentences for w in s)))
    vocabulary = SubwordVocabulary(build_subword_tokenizer(sentences, kind, size))  # type: ignore[arg-type]
    assert len(vocabulary) <= size
    assert [vocabulary.join(row) for row in vocabulary.encode(sentences)] == sentences


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "word", ["Ω", "catΩ", "", "a b", "a\u00a0b", f"a{MARKER}b", f"{MARKER}cat", "<bos>", "x<mask>"]
)
def test_words_that_the_pieces_cannot_spell_are_flagged(kind: str, word: str) -> None:
    vocabulary = SubwordVocabulary(TOKENIZERS[kind])
    pieces = vocabulary.align([["cat", word, "the"]])
    assert pieces.unreadable.tolist() == [False, True, False]
    ids = pieces.ids[pieces.starts[1] : pieces.starts[2]]
    assert vocabulary.unk in ids
    assert not set(ids.tolist()) & {vocabulary.pad, vocabulary.bos, vocabulary.eos, vocabulary.mask}
    assert pieces.counts[0] == vocabulary.align([["cat"]]).counts[0]


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_it_adds_the_marks_of_its_objective(kind: str, tmp_path: Path) -> None:
    for objective, after in (("causal", []), ("masked", [3])):
        folder = tmp_path / objective
        build_subword_tokenizer(TEXT, kind, 70, objective=objective).save_pretrained(folder)  # type: ignore[arg-type]
        loaded = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        assert is_ours(loaded)
        vocabulary = encoder_of(loaded)
        assert isinstance(vocabulary, SubwordVocabulary)
        rows = vocabulary.encode(TEXT[:5])
        for sentence, row in zip(TEXT[:5], rows, strict=True):
            assert loaded(" ".join(sentence))["input_ids"] == [2, *row.tolist(), *after]


@pytest.mark.parametrize("kind", KINDS)
def test_training_is_repeatable(kind: str) -> None:
    """The library's unigram trainer is not: every hash table it makes has another order of words."""
    rng = np.random.default_rng(0)
    syllables = ["ba", "ko", "ti", "ru", "me", "san", "do", "li"]
    words = ["".join(rng.choice(syllables, size=rng.integers(1, 4))) for _ in range(300)]
    text = [[words[i] for i in rng.integers(300, size=8)] for _ in range(200)]
    made = {build_subword_tokenizer(text, kind, 120).backend_tokenizer.to_str() for _ in range(3)}  # type: ignore[arg-type]
    assert len(made) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_without_room_for_the_characters_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="3 different characters, which need at least 10"):
        build_subword_tokenizer([["abc"]], kind, 9)  # type: ignore[arg-type]
    assert len(SubwordVocabulary(build_subword_tokenizer([["abc"]], kind, 10))) <= 10  # type: ignore[arg-type]


@pytest.mark.parametrize("word", [*SPECIALS, "", "a b", f"x{MARKER}"])
def test_words_that_cannot_be_kept_are_refused(word: str) -> None:
    with pytest.raises(InputError, match="word"):
        build_subword_tokenizer([["fine", word]], "bpe", 50)


def test_settings_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(InputError, match="vocab_size is a setting of the bpe and unigram"):
        model_settings(vocab_size=100)
    with pytest.raises(InputError, match="the bpe tokenizer needs vocab_size"):
        model_settings(tokenizer="bpe")
    with pytest.raises(InputError, match="min_count is a setting of the word"):
        model_settings(tokenizer="unigram", vocab_size=100, min_count=2)
    assert model_settings(tokenizer="bpe", vocab_size=100).label == "gpt2-2x128-bpe100"
    ngram = model_settings(architecture="ngram", tokenizer="unigram", vocab_size=100)
    assert ngram.label == "ngram-3-kneser-ney-unigram100"


def test_the_settings_choose_the_tokeniser() -> None:
    assert isinstance(encoder_of(make_tokenizer(model_settings(), TEXT, "causal")), WordVocabulary)
    for kind in KINDS:
        config = model_settings(tokenizer=kind, vocab_size=60)  # type: ignore[arg-type]
        made = make_tokenizer(config, TEXT, "causal")
        assert type(made.backend_tokenizer.model).__name__.lower() == kind
        assert len(encoder_of(made)) <= 60


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_text_with_too_few_pieces_says_so(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    sentences = [["abba", "ab"], ["ba", "baab"]] * 5
    tokenizer = make_tokenizer(model_settings(tokenizer=kind, vocab_size=10**10), sentences, "causal")
    assert caplog.messages == [
        f"the text gives only {len(tokenizer):,} pieces ({kind}), fewer than vocab_size 10,000,000,000"
    ]
    caplog.clear()
    make_tokenizer(model_settings(tokenizer=kind, vocab_size=len(tokenizer)), sentences, "causal")
    assert not caplog.messages
