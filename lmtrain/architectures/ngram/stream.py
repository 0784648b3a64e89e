"""Sentences as one stream of token numbers, the form that counting and scoring read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from truesource.generator.columns import CodedSentences, Rows
from truesource.grammar.support.arrays import Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.encoding import encode_rows
from truesource.lmtrain.tokenizer import Encoder

MOST_TOKENS = 2**31 - 1  #: places in a stream are 32-bit numbers


class Stream(NamedTuple):
    """``<bos> w1 .. wn <eos>``, sentence by sentence."""

    tokens: Int32Array  #: (T,)
    ends: IntArray  #: (S,) where each sentence ends
    lengths: IntArray  #: (S,) words, or pieces of words, of each sentence

    @property
    def begins(self) -> IntArray:
        """Where each sentence begins, (S,)."""
        return self.ends - self.lengths - 2

    @property
    def n_events(self) -> int:
        """Words, or pieces, and sentence ends."""
        return len(self.tokens) - len(self.ends)


def read_stream(sentences: Sequence[Sequence[str]], vocabulary: Encoder) -> Stream:
    """Number the words, or pieces, of sentences, unknown ones as ``<unk>``.

    Raises:
        InputError: there are more than 2^31 - 1 tokens.
    """
    return as_stream(encode_rows(vocabulary, CodedSentences.of(sentences)), vocabulary)


def as_stream(rows: Rows, vocabulary: Encoder) -> Stream:
    """Rows of token numbers with their marks.

    Raises:
        InputError: there are more than 2^31 - 1 tokens.
    """
    lengths = rows.lengths
    total = len(rows.flat) + 2 * len(rows)
    if total > MOST_TOKENS:
        raise InputError(f"n-gram counts take {MOST_TOKENS} tokens, these are {total}; use fewer sentences")
    stream = Stream(np.empty(total, dtype=np.int32), np.cumsum(lengths + 2), lengths)
    is_word = np.ones(total, dtype=bool)
    for places, mark in ((stream.begins, vocabulary.bos), (stream.ends - 1, vocabulary.eos)):
        stream.tokens[places] = mark
        is_word[places] = False
    stream.tokens[is_word] = rows.flat
    return stream
