"""An n-gram model of pieces as a model of its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from truesource.generator.columns import Rows
from truesource.generator.language_model import (
    EVERY_POSITION,
    LogDistributions,
    ScoringFrame,
    TokenScores,
    framed_scores,
)
from truesource.grammar.sentences import takes_sentences
from truesource.grammar.support.arrays import IntArray
from truesource.lmtrain.architectures.ngram.reading import Reader
from truesource.lmtrain.architectures.ngram.trie import Stream, as_stream
from truesource.lmtrain.pieces.token_model import CausalPieces, CausalTokens
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary


class PieceNgrams(CausalPieces, Protocol):
    """The parts of an n-gram model of pieces that its tokens need."""

    reader: Reader
    aligner: SubwordVocabulary

    def expected(self, stream: Stream, columns: IntArray) -> Iterator[LogDistributions]:
        """Yield the log probabilities of some tokens at every position of sentences of one length."""


class NgramTokens(CausalTokens):
    """An n-gram model of pieces as a model of its tokens, with full distributions over them.

    Args:
        model: of pieces.
    """

    def __init__(self, model: PieceNgrams) -> None:
        super().__init__(model)
        self._model = model

    def _stream(self, sentences: Sequence[Sequence[str]]) -> Stream:
        pieces = self._aligner.align(sentences)
        return as_stream(Rows(pieces.ids.astype(np.int32), np.diff(pieces.bounds)), self._model.aligner)

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return the log probability of every piece and sentence end that ``frame`` counts."""
        stream = self._stream(sentences)
        unknown = np.delete(stream.tokens, stream.begins) == self._model.aligner.unk
        return framed_scores(self._model.reader.score(stream), unknown, stream.lengths + 1, stream.lengths, frame)

    @takes_sentences
    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield the distribution of the next piece or end at every position; see `DistributionModel.distributions`.

        Raises:
            InputError: the sentences differ in length.
        """
        yield from self._model.expected(self._stream(sentences), np.array(self._columns, dtype=np.int64))
