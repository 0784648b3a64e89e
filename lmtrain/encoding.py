"""Sentences as rows of token numbers, in memory for corpora of a hundred million tokens."""

from __future__ import annotations

import numpy as np

from truesource.generator.columns import CodedSentences, Rows
from truesource.lmtrain.tokenizer import Encoder, WordVocabulary

BLOCK = 20_000  #: sentences that are lists of words at once


def encode_rows(encoder: Encoder, sentences: CodedSentences) -> Rows:
    """What ``encoder.encode`` makes of the sentences, as one array."""
    if isinstance(encoder, WordVocabulary):  # a token a word: translate the numbers
        numbers = np.array([encoder.ids.get(word, encoder.unk) for word in sentences.words], dtype=np.int32)
        flat, lengths = numbers[sentences.rows.flat], sentences.lengths
    else:
        parts, sizes = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
        for start in range(0, len(sentences), BLOCK):
            block = Rows.of(encoder.encode(sentences[start : start + BLOCK]))
            parts.append(block.flat)
            sizes.append(block.lengths)
        flat, lengths = np.concatenate(parts), np.concatenate(sizes)
    return Rows(flat, lengths)
