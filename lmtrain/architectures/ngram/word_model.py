"""An n-gram model of whole words as a `LanguageModel`: scores, full distributions, next words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from transformers import PreTrainedTokenizerFast

from truesource.generator.language_model import LogDistributions, ScoringFrame, TokenScores, framed_scores
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram.counted import CountedModel
from truesource.lmtrain.architectures.ngram.smoothing import Smoothing
from truesource.lmtrain.architectures.ngram.trie import Trie
from truesource.lmtrain.decoding.decode import Alphabet
from truesource.lmtrain.next_token import NextTokenProbabilities
from truesource.lmtrain.tokenizer import WordVocabulary


class NgramModel(CountedModel):
    """A model of each word given the N - 1 tokens before it; implements `DistributionModel` and `StepwiseModel`.

    Args:
        trie: counts, as `truesource.lmtrain.architectures.ngram.smoothing.adjust` left them.
        smoothing: ``mle`` or ``kneser_ney``.
        tokenizer: word by word, as `truesource.lmtrain.tokenizer.build_tokenizer` makes it.
        name: what the model is called in tables.
        discount: of ``kneser_ney``, see `truesource.lmtrain.architectures.ngram.smoothing.estimate`.

    Raises:
        InputError: counts and tokeniser are of two models.
    """

    def __init__(
        self,
        trie: Trie,
        smoothing: Smoothing,
        tokenizer: PreTrainedTokenizerFast,
        name: str,
        *,
        discount: FloatArray | None = None,
    ) -> None:
        self.encoder = v = WordVocabulary(tokenizer)
        self._columns: IntArray = np.append(v.word_ids, [v.unk, v.eos])
        super().__init__(trie, smoothing, tokenizer, v, self._columns, name, discount=discount)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words it knows, frequent ones first; all others are ``<unk>`` to it."""
        return self.encoder.words

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Log probability of every word and sentence end that ``frame`` counts.

        Sentences with a token of probability zero, which only ``mle`` gives, are ``impossible`` as a whole.
        """
        stream = self.read(sentences)
        values = self.reader.score(stream)
        unknown = np.delete(stream.tokens, stream.begins) == self.encoder.unk
        return framed_scores(values, unknown, stream.lengths + 1, stream.lengths, frame)

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Its expectation at positions 0 to n of sentences of one length n.

        Columns are the words of ``vocabulary``, ``<unk>``, the end; a row of ``mle`` after a context that was never
        seen is -inf throughout.

        Raises:
            InputError: the sentences differ in length.
        """
        stream = self.read(sentences)
        if len(set(stream.lengths.tolist())) > 1:
            raise InputError("distributions are of sentences of one length; group them by length")
        if not len(stream.lengths):
            return
        rows = stream.tokens.reshape(len(stream.lengths), -1)[:, 1:]
        state = self.reader.begin(len(rows))
        for position in range(rows.shape[1]):
            yield LogDistributions(position, self.reader.expect(state, self._columns))
            if position + 1 < rows.shape[1]:
                state = self.reader.advance(state, rows[:, position])

    def next_token(self, prefix: Sequence[str]) -> NextTokenProbabilities:
        """Probabilities of what follows ``prefix`` (words; may be empty); all 0 where ``mle`` never saw its end."""
        state = self.reader.begin(1)
        for token in self.encoder.encode([prefix])[0]:
            state = self.reader.advance(state, np.array([token]))
        p = np.exp(self.reader.expect(state, self._columns)[0])
        return NextTokenProbabilities(p[:-2], float(p[-2]), float(p[-1]), 0.0)

    @property
    def alphabet(self) -> Alphabet:
        """Its tokens, for `truesource.lmtrain.decoding`."""
        return Alphabet.of_words(self.encoder, len(self.encoder), self.longest)
