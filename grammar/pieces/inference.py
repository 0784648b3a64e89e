"""Exact next-piece distributions, from next-word distributions and tries of the pieces of words.

After complete words w and pieces s of the current word, M(s) is the sum of P(v | w) over the words v whose pieces begin
with s. A piece p that continues the word has the probability M(s p) / M(s). If s are all pieces of a word v, a
piece p that begins the next word has P(v | w) / M(s) times the sum of P(u | w v) over the words u whose pieces begin
with p, and the end has P(v | w) / M(s) times P(end | w v).

Contexts ``w v`` of which v is no word of the text, such as "the cat" in a text that continues with "the cats", need the
distribution after one more prefix each; equal ones are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch, Distributions, run
from truesource.grammar.inference.causal import ExactCausal
from truesource.grammar.inference.next_token import NextToken
from truesource.grammar.pieces.batches import PieceBatch, piece_batches
from truesource.grammar.pieces.masked import masked_rows
from truesource.grammar.pieces.segmentation import Segmentation
from truesource.grammar.pieces.tables import PieceTables
from truesource.grammar.sentences import takes_sentence, takes_sentences
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter

if TYPE_CHECKING:
    from truesource.grammar.truth import Truth


class PieceInference(ExactCausal):
    """Exact inference of a language of pieces, see `truesource.grammar.inference.causal.ExactCausal`.

    Length conditions are ranges of words.
    """

    def __init__(self, truth: Truth, segmentation: Segmentation) -> None:
        self.truth, self.segmentation = truth, segmentation

    @property
    def total_mass(self) -> float:
        """Total probability of all sentences."""
        return self.truth.exact.total_mass

    @property
    def mean_length(self) -> float:
        """Expected number of pieces of a sentence."""
        return float(self.expected_words().sum())

    def expected_words(self, lengths: LengthRange | None = None) -> FloatArray:
        """Return the expected number of each piece in a sentence, (K,).

        Raises:
            InputError: it is not finite, or no sentence has such a length.
        """
        from truesource.grammar.truth import word_counts

        segmentation = self.segmentation
        begin = self.truth.exact.next_token([], lengths).probability
        later = segmentation.counts(segmentation.cuts).T @ (word_counts(self.truth, lengths) - begin)
        return np.asarray(later + segmentation.counts(segmentation.first).T @ begin, dtype=np.float64)

    def length_pmf(self, high: int, lengths: LengthRange | None = None) -> FloatArray:
        """Return P(a sentence has m words), m = 0..``high``, (high+1,)."""
        return self.truth.exact.length_pmf(high, lengths)

    def range_mass(self, lengths: LengthRange) -> float:
        """Return P(the number of words is in a range)."""
        return self.truth.exact.range_mass(lengths)

    def encode(self, sentence: Sequence[str]) -> Int32Array:
        """Return piece numbers, (n,); -1 for an unknown piece.

        Raises:
            InputError: the sentence is of words, not of pieces.
        """
        ids, words = self.segmentation.piece_ids, self.truth.word_ids
        if any(piece not in ids for piece in sentence) and all(piece in words for piece in sentence):
            raise InputError(
                f"{' '.join(sentence)!r} is a sentence of words, but the tokens of this language are pieces; cut it"
                " with pieces_of"
            )
        return np.array([ids.get(piece, -1) for piece in sentence], dtype=np.int32)

    @takes_sentences
    def causal_batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[Batch]:
        """Return sentences of pieces in batches for `next_token_blocks`; equal sentences share a column.

        Raises:
            InputError: a sentence has no pieces.
        """
        return [*piece_batches(self.encode, sentences, len(self.segmentation.pieces))]

    @takes_sentences
    def causal_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[FloatArray]:
        """Return ln P(piece | its left context) of each sentence, (n+1,) nats with the end; -inf once impossible."""
        rows: list[FloatArray] = [np.empty(0)] * len(sentences)
        filled = [i for i, sentence in enumerate(sentences) if len(sentence)]
        for i in set(range(len(sentences))).difference(filled):
            rows[i] = _log(np.array([self.truth.exact.next_token([], lengths).stop]))

        work = piece_batches(self.encode, [sentences[i] for i in filled], len(self.segmentation.pieces))
        with meter("exact next-piece probabilities of sentences", len(filled)) as progress:
            for batch in work:
                logs = _dead_after(_log(self._tables(batch, lengths, dtype, full=False).observed))
                for column, members in enumerate(batch.members, start=batch.column):
                    for member in members:
                        rows[filled[member]] = logs[: len(batch.words) + 1, column].copy()
                progress.advance(sum(map(len, batch.members)))
        return rows

    @takes_sentence
    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Return the distribution of the next piece or the end after some pieces.

        Raises:
            InputError: no sentence (in that length range) starts with them.
        """
        pieces = self.segmentation.pieces
        if not prefix:
            first = self.truth.exact.next_token([], lengths)
            trie = self.segmentation.first_trie
            row = np.zeros(len(pieces))
            edges = trie.edges
            row[edges.piece[: edges.first[1]]] = trie.sums(first.probability[None])[edges.child[: edges.first[1]], 0]
            return NextToken(pieces, row, first.stop, np.empty(0))
        (batch,) = self.causal_batches([prefix], lengths)
        *_, last = self.next_token_blocks(batch, lengths)
        if not last.possible[0]:
            raise InputError(f"no sentence starts with the pieces {list(prefix)!r}")
        return NextToken(pieces, last.probability[0, :-1], float(last.probability[0, -1]), np.empty(0))

    def next_token_blocks(
        self, batch: Batch, lengths: LengthRange | None = None, *, first: int = 0, dtype: DTypeLike = np.float64
    ) -> Iterator[Distributions]:
        """Yield the next-piece distributions of one of `causal_batches`, positions ``first`` to n."""
        assert isinstance(batch, PieceBatch)
        tables = self._tables(batch, lengths, dtype, full=True)
        n, width = batch.words.shape
        columns = slice(batch.column, batch.column + width)
        end = np.full((1, width), len(self.segmentation.pieces))
        observed = np.concatenate([batch.words.astype(np.int64), end])
        logs = _dead_after(_log(tables.observed[: n + 1, columns]))
        whole = np.asarray(np.isfinite(logs).all(axis=0))
        for t in range(first, n + 1):
            table = tables.table[t, columns]
            possible = np.asarray(table.any(axis=1))
            yield Distributions(t, batch.members, observed[t], table, possible, whole, logs[t], np.empty((width, 0)))

    @takes_sentences
    def masked_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None
    ) -> list[FloatArray]:
        """Return ln P(piece | all other pieces and their number) of each sentence, (n,) nats; -inf if impossible.

        Raises:
            InputError: the language of words has no rules.
        """
        rows: list[FloatArray] = [np.empty(0)] * len(sentences)
        filled = [i for i, sentence in enumerate(sentences) if len(sentence)]

        def task(batch: Batch) -> FloatArray:
            return np.stack([block.log_observed for block in self.masked_blocks(batch, lengths)])

        work = self.causal_batches([sentences[i] for i in filled])
        for batch, table in run(task, work, "exact masked-piece probabilities of sentences", len(filled)):
            for column, members in enumerate(batch.members):
                for member in members:
                    rows[filled[member]] = table[:, column].copy()
        return rows

    def masked_blocks(self, batch: Batch, lengths: LengthRange | None = None) -> Iterator[Distributions]:
        """Yield the masked distributions of one of `causal_batches`, positions 0 to n-1.

        Raises:
            InputError: the language of words has no rules.
        """
        n, width = batch.words.shape
        observed = batch.words.astype(np.int64)
        table = np.stack(masked_rows(self.truth, self.segmentation, observed.T.tolist(), lengths), axis=1)
        there = np.take_along_axis(table, np.maximum(observed, 0)[:, :, None], axis=2)[:, :, 0]
        logs = _log(np.where(observed >= 0, there, 0.0))
        whole = np.asarray(np.isfinite(logs).all(axis=0))
        for t in range(n):
            possible = np.asarray(table[t].any(axis=1))
            yield Distributions(t, batch.members, observed[t], table[t], possible, whole, logs[t], np.empty((width, 0)))

    def _tables(self, batch: PieceBatch, lengths: LengthRange | None, dtype: DTypeLike, *, full: bool) -> PieceTables:
        group = batch.group

        def fill() -> PieceTables:
            return PieceTables(self.truth.exact, self.segmentation, group.sentences, lengths, dtype, full=full)

        return group.tables((self, lengths, dtype, full), fill, len(batch.members))


def _log(probability: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(probability)


def _dead_after(logs: FloatArray) -> FloatArray:
    """Return log probabilities (T+1, W) with -inf from the first impossible piece of a sentence on."""
    dead = np.logical_or.accumulate(np.isneginf(logs), axis=0)
    return np.where(dead, -np.inf, logs)
