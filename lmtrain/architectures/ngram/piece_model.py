"""An n-gram model of pieces of words: as a `LanguageModel` of words, and as a model of pieces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from transformers import PreTrainedTokenizerFast

from truesource.generator.columns import Rows
from truesource.generator.language_model import PieceTokenizer, ScoringFrame, TokenScores
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.lmtrain.architectures.ngram.counted import CountedModel
from truesource.lmtrain.architectures.ngram.incremental_scorer import NgramScorer
from truesource.lmtrain.architectures.ngram.mass import log_mass
from truesource.lmtrain.architectures.ngram.smoothing import Smoothing
from truesource.lmtrain.architectures.ngram.stream import as_stream
from truesource.lmtrain.architectures.ngram.trie import Trie
from truesource.lmtrain.decoding.decode import Alphabet
from truesource.lmtrain.pieces.inventory import read_pieces
from truesource.lmtrain.pieces.open_vocabulary import OpenVocabulary, reading_of
from truesource.lmtrain.pieces.prediction_slots import Slots, align_words, assemble_words
from truesource.lmtrain.subwords import SubwordVocabulary
from truesource.lmtrain.tokenizer import SPECIALS


class NgramPieceModel(CountedModel, OpenVocabulary):
    """A model of each piece given the N - 1 tokens before it.

    It is a `truesource.generator.language_model.TokenisedModel`. Nothing is given to ``<unk>`` or any other
    special token but the end.

    Args:
        trie: counts, as `truesource.lmtrain.architectures.ngram.smoothing.adjust` left them.
        smoothing: ``mle`` or ``kneser_ney``.
        tokenizer: of pieces, as `truesource.lmtrain.subwords.build_subword_tokenizer` makes it.
        name: what the model is called in tables.
        discount: of ``kneser_ney``, see `truesource.lmtrain.architectures.ngram.smoothing.estimate`.

    Raises:
        InputError: counts and tokeniser are of two models.
    """

    chosen_before: str | None = None  #: its own ``<bos>`` always

    def __init__(
        self,
        trie: Trie,
        smoothing: Smoothing,
        tokenizer: PreTrainedTokenizerFast,
        name: str,
        *,
        discount: FloatArray | None = None,
    ) -> None:
        self._vocabulary = v = SubwordVocabulary(tokenizer)
        emitted = np.append(np.arange(len(SPECIALS), len(v)), v.eos)
        super().__init__(trie, smoothing, tokenizer, v, emitted, name, discount=discount)

    @property
    def reading(self) -> str:
        """How words are scored, for signatures; see `truesource.lmtrain.pieces.models.CausalPieceModel.reading`."""
        return reading_of(self._vocabulary)

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Log probability of every word and sentence end that ``frame`` counts; see `lmtrain.pieces.scoring`.

        Sentences with a piece of probability zero, which only ``mle`` gives, are ``impossible`` as a whole, as are
        those with a word that the pieces cannot spell; a frame that skips unknown words leaves out that word only.
        """
        pieces = align_words(self._vocabulary, sentences, frame)
        slots = Slots.of(pieces)
        stream = as_stream(Rows(pieces.ids.astype(np.int32), np.diff(pieces.bounds)), self._vocabulary)
        values = self.reader.score(stream)
        if frame.unk == "skip":
            values[np.delete(stream.tokens, stream.begins) == self._vocabulary.unk] = 0.0  # not counted
        boundary = np.zeros(slots.n)
        boundary[slots.opens] = self._log_begins[self.reader.contexts(stream)[slots.opens]]
        boundary[~np.isfinite(boundary)] = 0.0  # what follows is impossible already
        return assemble_words(pieces, slots, values, boundary, frame, ends=True)

    @cached_property
    def _log_begins(self) -> FloatArray:
        """(C,) log B by context: the next token begins a word, or is the end."""
        return log_mass(self.estimate, self._vocabulary.begins)

    @property
    def alphabet(self) -> Alphabet:
        """Its pieces, for `truesource.lmtrain.decoding`; sentences are drawn piece by piece and spelt."""
        v = self._vocabulary
        return Alphabet(len(v), v.eos, (v.pad, v.unk, v.bos, v.mask), None, v.join)

    @property
    def around(self) -> tuple[int, int]:
        """One token stands before a text, one after it."""
        return 1, 1

    @cached_property
    def pieces(self) -> PieceTokenizer:
        """Its tokeniser, for sums over all ways to cut a text."""
        return read_pieces(self.tokenizer)

    def log_probs(self, rows: Sequence[IntArray]) -> FloatArray:
        """(R,) log probability of each row of pieces and of the end after it, nats; -inf for what ``mle`` never saw."""
        if not len(rows):
            return np.zeros(0)
        stream = as_stream(Rows.of(rows), self._vocabulary)
        begins = np.cumsum(stream.lengths + 1) - stream.lengths - 1
        sums: FloatArray = np.add.reduceat(self.reader.score(stream), begins)
        return sums

    def token_steps(self, rows: Sequence[IntArray]) -> int:
        """Look-ups of `log_probs` of these rows: one a piece, and one for the end of each."""
        return sum(len(row) + 1 for row in rows)

    def incremental_scorer(self) -> NgramScorer:
        """Begin to read texts piece by piece."""
        return NgramScorer(self.reader)
