"""Sentences kept as numbers are the sentences."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.generator.columns import CodedSentences, Rows
from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG

SENTENCES = st.lists(st.lists(st.text("abé ", min_size=1, max_size=2), max_size=5), max_size=12)


@given(SENTENCES)
def test_sentences_come_back(sentences: list[list[str]]) -> None:
    coded = CodedSentences.of(sentences)
    assert CodedSentences.of(coded) is coded
    assert list(coded) == sentences
    assert coded[1:4] == sentences[1:4]
    assert coded.lengths.tolist() == [len(sentence) for sentence in sentences]
    counts = Counter(word for sentence in sentences for word in sentence)
    assert dict(zip(coded.words, coded.counts().tolist(), strict=True)) == counts
    if sentences:
        assert coded[-1] == sentences[-1]
    with pytest.raises(IndexError):
        coded[len(sentences)]


@pytest.mark.long
@given(SENTENCES, SENTENCES)
def test_joined_parts_share_their_words(one: list[list[str]], two: list[list[str]]) -> None:
    parts = [CodedSentences.of(sentences) for sentences in (one, two)]
    joined = CodedSentences.join((part.words, part.rows.flat, part.lengths) for part in parts)
    assert list(joined) == one + two
    assert len(set(joined.words)) == len(joined.words)


def test_texts_are_cut_at_spaces_and_spelt() -> None:
    texts = [pa.chunked_array([["a b", "b"], ["c a a"]]), pa.chunked_array([["x"]])]
    coded = CodedSentences.split(texts, {"x": "a b"})
    assert list(coded) == [["a", "b"], ["b"], ["c", "a", "a"], ["a b"]]


def test_rows_are_kept_one_after_the_other() -> None:
    rows = [np.array([3, 1]), np.array([], dtype=np.int64), np.array([7])]
    kept = Rows.of(rows)
    assert Rows.of(kept) is kept
    assert kept.flat.dtype == np.int32
    assert [row.tolist() for row in kept] == [[3, 1], [], [7]]
    assert [row.tolist() for row in kept.filled()] == [[3, 1], [7]]
    assert len(Rows.of([])) == 0
    with pytest.raises(ValueError, match="2 entries together, but 3"):
        Rows(np.zeros(3, dtype=np.int32), np.array([1, 1]))


def test_a_corpus_gives_the_same_sentences_coded(tmp_path: Path) -> None:
    """Some words are spelt differently in the text column: one has a no-break space."""
    pcfg = PCFG.from_text("S -> S S 0.4 | 'a' 0.3 | 'b\u00a0c' 0.3")
    corpus = Corpus.sample(pcfg, {"train": 60, "dev": 5}, seed=1, path=tmp_path / "corpus", shard_size=20)
    assert list(corpus.coded("train")) == corpus.sentences("train")
    assert "b\u00a0c" in corpus.coded("train").words
