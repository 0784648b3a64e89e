"""N-gram models of words and of pieces of words, and reading their folders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np
from transformers import PreTrainedTokenizerFast

from truesource.generator.columns import Rows
from truesource.generator.language_model import (
    EVERY_POSITION,
    LogDistributions,
    NextTokenProbabilities,
    ScoringFrame,
    TokenScores,
    framed_scores,
    model_line,
)
from truesource.generator.objectives import Objective
from truesource.generator.piece_model import PieceTokenizer
from truesource.grammar.sentences import takes_sentence, takes_sentences
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram.reading import NgramScorer, Reader, log_mass
from truesource.lmtrain.architectures.ngram.trie import FILE as COUNTS
from truesource.lmtrain.architectures.ngram.trie import (
    NgramEstimate,
    Smoothing,
    Stream,
    Trie,
    as_stream,
    estimate,
    load_counts,
    read_stream,
)
from truesource.lmtrain.decoding.alphabet import Alphabet
from truesource.lmtrain.folders import model_type_of, read_config_json, read_tokenizer
from truesource.lmtrain.pieces.cut_words import CutsWords
from truesource.lmtrain.pieces.inventory import read_pieces
from truesource.lmtrain.pieces.words import OpenVocabulary, Slots, align_words, assemble_words, reading_of
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary, is_ours, is_subword
from truesource.lmtrain.tokenizer import SPECIALS
from truesource.lmtrain.training_record import model_name, require_unchanged
from truesource.lmtrain.word_vocabulary import Encoder, WordVocabulary

if TYPE_CHECKING:
    from truesource.lmtrain.architectures.ngram.stepper import NgramStepper
    from truesource.lmtrain.architectures.ngram.tokens import NgramTokens

NGRAM = "ngram"  #: in ``config.json``


class CountedModel(ABC):
    """A model of each token given the N - 1 tokens before it.

    Args:
        estimate: log probabilities of the n-grams.
        tokenizer: as it is saved.
        encoder: the same tokeniser as counting sees it.
        name: name in tables.

    Raises:
        InputError: counts and tokeniser are of two models.
    """

    objective: Objective = "causal"
    folder: Path | None = None  #: the folder it was loaded from, which may have the record of its training

    def __init__(
        self,
        estimate: NgramEstimate,
        tokenizer: PreTrainedTokenizerFast,
        encoder: Encoder,
        name: str,
    ) -> None:
        if len(encoder) != estimate.trie.n_tokens:
            raise InputError(
                f"the tokeniser has {len(encoder)} tokens, the counts {estimate.trie.n_tokens}; they are of two models"
            )
        self.tokenizer, self._encoder = tokenizer, encoder
        self.name = name
        self.estimate = estimate
        self.reader = Reader(self.estimate, encoder.bos, encoder.eos)

    def __repr__(self) -> str:
        return model_line(self)

    @property
    def longest(self) -> None:
        """Maximum number of words or pieces in a sentence; None: any number."""
        return None

    @property
    def n_ngrams(self) -> int:
        """Number of different n-grams of 1 to N tokens that it has counts of."""
        return self.estimate.trie.n_ngrams

    @property
    @abstractmethod
    def alphabet(self) -> Alphabet:
        """Its tokens, for `truesource.lmtrain.decoding`."""

    def read(self, sentences: Sequence[Sequence[str]]) -> Stream:
        """Return the token numbers of sentences."""
        return read_stream(sentences, self._encoder)

    def expected(self, stream: Stream, columns: IntArray) -> Iterator[LogDistributions]:
        """Yield the log probabilities of some tokens at every position of sentences of one length.

        Raises:
            InputError: the sentences differ in length.
        """
        if len(set(stream.lengths.tolist())) > 1:
            raise InputError("distributions are of sentences of one length; group them by length")
        if not len(stream.lengths):
            return
        rows = stream.tokens.reshape(len(stream.lengths), -1)[:, 1:]
        state = self.reader.begin(len(rows))
        for position in range(rows.shape[1]):
            yield LogDistributions(position, self.reader.expect(state, columns))
            if position + 1 < rows.shape[1]:
                state = self.reader.advance(state, rows[:, position])

    def stepper(self) -> NgramStepper:
        """Return its next-token log probabilities, for one batch of text at a time."""
        from truesource.lmtrain.architectures.ngram.stepper import NgramStepper  # torch

        return NgramStepper(self.reader)


class NgramModel(CountedModel):
    """A model of each word given the N - 1 tokens before it; implements `DistributionModel` and `StepwiseModel`.

    It takes the arguments and raises the errors of `CountedModel`; ``tokenizer`` comes from
    `truesource.lmtrain.tokenizer.build_tokenizer`.
    """

    def __init__(
        self,
        estimate: NgramEstimate,
        tokenizer: PreTrainedTokenizerFast,
        name: str,
    ) -> None:
        self.encoder = v = WordVocabulary(tokenizer)
        self._columns = emitted_words(v)
        super().__init__(estimate, tokenizer, v, name)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words it knows, frequent ones first; all others are ``<unk>`` to it."""
        return self.encoder.words

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Return the log probability of every word and sentence end that ``frame`` counts.

        Sentences with a token of probability zero, which only ``mle`` gives, are ``impossible`` as a whole.
        """
        stream = self.read(sentences)
        values = self.reader.score(stream)
        unknown = np.delete(stream.tokens, stream.begins) == self.encoder.unk
        return framed_scores(values, unknown, stream.lengths + 1, stream.lengths, frame)

    @takes_sentences
    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        """Yield the distributions at positions 0 to n of sentences of one length n.

        Columns are the words of ``vocabulary``, ``<unk>``, the end; a row of ``mle`` after a context that was never
        seen is -inf throughout.

        Raises:
            InputError: the sentences differ in length.
        """
        yield from self.expected(self.read(sentences), self._columns)

    @takes_sentence
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


class NgramPieceModel(CutsWords, CountedModel, OpenVocabulary):
    """A model of each piece given the N - 1 tokens before it.

    It is a `truesource.generator.piece_model.TokenisedModel`. Special tokens but the end, ``<unk>`` among them, have
    probability zero.

    It takes the arguments and raises the errors of `CountedModel`; ``tokenizer`` comes from
    `truesource.lmtrain.subwords.build_subword_tokenizer`.
    """

    chosen_before: str | None = None  #: its own ``<bos>`` always

    def __init__(
        self,
        estimate: NgramEstimate,
        tokenizer: PreTrainedTokenizerFast,
        name: str,
    ) -> None:
        self.aligner = v = SubwordVocabulary(tokenizer)
        super().__init__(estimate, tokenizer, v, name)

    def as_tokens(self) -> NgramTokens:
        """Return this model as a model of sequences of its pieces, with full distributions over them."""
        from truesource.lmtrain.architectures.ngram.tokens import NgramTokens  # torch

        return NgramTokens(self)

    @property
    def reading(self) -> str:
        """The way that words are scored, see `truesource.lmtrain.pieces.models.CausalPieceModel.reading`."""
        return reading_of(self.aligner)

    @takes_sentences
    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame = EVERY_POSITION) -> TokenScores:
        """Log probability of every word and sentence end that ``frame`` counts; see `lmtrain.pieces.scoring`.

        Sentences with a piece of probability zero, which only ``mle`` gives, are ``impossible`` as a whole, as are
        those with a word that the pieces cannot spell; a frame that skips unknown words leaves out that word only.
        """
        pieces = align_words(self.aligner, sentences, frame)
        slots = Slots.of(pieces)
        stream = as_stream(Rows(pieces.ids.astype(np.int32), np.diff(pieces.bounds)), self.aligner)
        values = self.reader.score(stream)
        if frame.unk == "skip":
            values[np.delete(stream.tokens, stream.begins) == self.aligner.unk] = 0.0  # not counted
        boundary = np.zeros(slots.n)
        boundary[slots.opens] = self._log_begins[self.reader.contexts(stream)[slots.opens]]
        boundary[~np.isfinite(boundary)] = 0.0  # the next piece is impossible already
        return assemble_words(pieces, slots, values, boundary, frame, ends=True)

    @cached_property
    def _log_begins(self) -> FloatArray:
        """(C,) log B by context: the next token begins a word, or is the end."""
        return log_mass(self.estimate, self.aligner.begins)

    @property
    def alphabet(self) -> Alphabet:
        """Its pieces, for `truesource.lmtrain.decoding`; sentences are drawn piece by piece and spelt."""
        v = self.aligner
        return Alphabet(len(v), v.eos, (v.pad, v.unk, v.bos, v.mask), None, v.join)

    @property
    def around(self) -> tuple[int, int]:
        """Numbers of tokens before and after a text, one each."""
        return 1, 1

    @cached_property
    def pieces(self) -> PieceTokenizer:
        """Its tokeniser, for sums over all ways to cut a text."""
        return read_pieces(self.tokenizer)

    def log_probs(self, rows: Sequence[IntArray]) -> FloatArray:
        """(R,) log probability of each row of pieces and of the end after it, nats; -inf for what ``mle`` never saw."""
        if not len(rows):
            return np.zeros(0)
        stream = as_stream(Rows.of(rows), self.aligner)
        begins = np.cumsum(stream.lengths + 1) - stream.lengths - 1
        sums: FloatArray = np.add.reduceat(self.reader.score(stream), begins)
        return sums

    def token_steps(self, rows: Sequence[IntArray]) -> int:
        """Return look-ups of `log_probs` of these rows: one a piece, and one for the end of each."""
        return sum(len(row) + 1 for row in rows)

    def incremental_scorer(self) -> NgramScorer:
        """Begin to read texts piece by piece."""
        return NgramScorer(self.reader)


def make_ngram(
    trie: Trie,
    smoothing: Smoothing,
    tokenizer: PreTrainedTokenizerFast,
    name: str,
    *,
    discount: FloatArray | None = None,
) -> NgramModel | NgramPieceModel:
    """Return a model of words or of pieces, as its tokeniser says.

    Args:
        trie: counts, as `truesource.lmtrain.architectures.ngram.trie.adjust` left them.
        smoothing: ``mle`` or ``kneser_ney``.
        tokenizer: of words, as `truesource.lmtrain.tokenizer.build_tokenizer` makes it, or of pieces.
        name: name in tables.
        discount: of ``kneser_ney``, see `truesource.lmtrain.architectures.ngram.trie.estimate`.

    Raises:
        InputError: counts and tokeniser are of two models.
    """
    if is_subword(tokenizer):
        pieces = SubwordVocabulary(tokenizer)
        emitted = np.append(np.arange(len(SPECIALS), len(pieces)), pieces.eos)
        return NgramPieceModel(estimate(trie, smoothing, emitted, discount=discount), tokenizer, name)
    emitted = emitted_words(WordVocabulary(tokenizer))
    return NgramModel(estimate(trie, smoothing, emitted, discount=discount), tokenizer, name)


def emitted_words(vocabulary: WordVocabulary) -> IntArray:
    """Return the tokens that can follow something in a model of words: the words, ``<unk>`` and the end."""
    result: IntArray = np.append(vocabulary.word_ids, [vocabulary.unk, vocabulary.eos])
    return result


def load_ngram(folder: str | Path) -> NgramModel | NgramPieceModel:
    """Load a trained folder.

    Raises:
        InputError: the folder is absent, unfinished, damaged, or of another kind of model.
    """
    folder = Path(folder)
    if model_type_of(folder) != NGRAM:
        raise InputError("there is no n-gram model here; train one", folder)
    config = read_config_json(folder / "config.json")
    trie, discount = load_counts(folder)
    if config.get("order") != trie.order or config.get("smoothing") not in get_args(Smoothing):
        raise InputError("config.json does not fit ngram.npz; train the model again", folder)
    tokenizer = read_tokenizer(folder, PreTrainedTokenizerFast)
    if not is_ours(tokenizer) or is_subword(tokenizer) != (config.get("tokenizer", "word") != "word"):
        raise InputError("the tokeniser is not the one of this n-gram model; train the model again", folder)
    require_unchanged(folder, ["config.json", COUNTS])
    return make_ngram(trie, config["smoothing"], tokenizer, model_name(folder), discount=discount)
