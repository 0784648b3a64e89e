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
from truesource.grammar.inference.batch import Batch, Distributions, encoded_batches, run
from truesource.grammar.inference.causal import ExactCausal
from truesource.grammar.inference.next_token import NextToken
from truesource.grammar.pieces.masked import masked_rows
from truesource.grammar.pieces.reading import PieceReading, read_pieces
from truesource.grammar.pieces.segmentation import Segmentation
from truesource.grammar.sentences import takes_sentence, takes_sentences
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.grammar.truth import Truth

Context = tuple[str, ...]
WIDEST = 512  #: most sentences in a batch; they have equally many pieces, but not equally many words


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
        row = 8 * (len(self.segmentation.pieces) + 1)
        return encoded_batches(self.encode, sentences, lambda n: row * (n + 1), WIDEST)

    @takes_sentences
    def causal_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[FloatArray]:
        """Return ln P(piece | its left context) of each sentence, (n+1,) nats with the end; -inf once impossible."""
        rows: list[FloatArray] = [np.empty(0)] * len(sentences)
        filled = [i for i, sentence in enumerate(sentences) if len(sentence)]
        for i in set(range(len(sentences))).difference(filled):
            rows[i] = _log(np.array([self.truth.exact.next_token([], lengths).stop]))

        def task(batch: Batch) -> FloatArray:
            filling = _Filling(self, batch, lengths, dtype)
            filling.along_texts()
            return _dead_after(_log(filling.observed))

        work = self.causal_batches([sentences[i] for i in filled], lengths)
        for batch, table in run(task, work, "exact next-piece probabilities of sentences", len(filled)):
            for column, members in enumerate(batch.members):
                for member in members:
                    rows[filled[member]] = table[:, column].copy()
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
        self, batch: Batch, lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> Iterator[Distributions]:
        """Yield the next-piece distributions of one batch, positions 0 to n."""
        filling = _Filling(self, batch, lengths, dtype, full=True)
        filling.along_texts()
        filling.beside_texts()
        n, width = batch.words.shape
        end = len(self.segmentation.pieces)
        observed = np.concatenate([batch.words.astype(np.int64), np.full((1, width), end)])
        logs = _dead_after(_log(filling.observed))
        whole = np.asarray(np.isfinite(logs).all(axis=0))
        table = filling.table
        for t in range(n + 1):
            possible = np.asarray(table[t].any(axis=1))
            yield Distributions(t, batch.members, observed[t], table[t], possible, whole, logs[t], np.empty((width, 0)))

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


class _Filling:
    """Probabilities of pieces at all positions of a batch, filled in as distributions of words come.

    Args:
        exact: the inference.
        batch: sentences of T pieces, W of them.
        lengths: condition.
        dtype: of charts.
        full: fill whole distributions too.
    """

    def __init__(
        self, exact: PieceInference, batch: Batch, lengths: LengthRange | None, dtype: DTypeLike, *, full: bool = False
    ) -> None:
        self._words = exact.truth.exact
        self._names = exact.segmentation.words
        self._segmentation, self._lengths, self._dtype = exact.segmentation, lengths, dtype
        self._reading: PieceReading = read_pieces(exact.segmentation, batch.words)
        n, width = batch.words.shape
        self.observed = np.zeros((n + 1, width))  #: P(observed piece, or the end | its left context)
        self.table = np.zeros((n + 1, width, len(exact.segmentation.pieces) + 1) if full else (0, 0, 0))
        self._full = full
        self._ends = np.zeros(len(self._reading.t))  # P(the word of the pieces so far | they begin the current word)

    def along_texts(self) -> None:
        """Fill in what follows from distributions after words of the texts."""
        reading = self._reading
        columns: dict[Context, list[int]] = {}
        for column, words in enumerate(reading.texts):
            columns.setdefault(tuple(self._names[word] for word in words), []).append(column)
        first = self._words.next_token([], self._lengths)
        table = np.append(first.probability, first.stop)[None]
        self._fill(0, table, np.zeros(len(reading.texts), dtype=np.int64))
        texts = [text for text in columns if text]
        if not texts:
            return
        for batch in self._words.causal_batches(texts, self._lengths, dtype=self._dtype):
            rows = np.full(len(reading.texts), -1, dtype=np.int64)
            for row, members in enumerate(batch.members):
                rows[[column for member in members for column in columns[texts[member]]]] = row
            for block in self._words.next_token_blocks(batch, self._lengths, dtype=self._dtype):
                if block.position:
                    self._fill(block.position, block.probability, rows)

    def _fill(self, position: int, probability: FloatArray, rows: IntArray) -> None:
        """Use distributions after ``position`` words of the texts; ``rows`` (W,) is the row of each text, or -1."""
        reading = self._reading
        trie = self._segmentation.trie if position else self._segmentation.first_trie
        mass = trie.sums(probability[:, :-1])
        if position:
            after = np.flatnonzero((reading.words == position - 1) & reading.on_text & (rows[reading.column] >= 0))
            self._begin(after, mass, probability[:, -1], rows[reading.column[after]])
        inside = np.flatnonzero((reading.words == position) & (rows[reading.column] >= 0))
        row, node = rows[reading.column[inside]], reading.node[inside]
        total = np.where(node > 0, mass[node, row], 1.0)
        share = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0.0)
        t, column, seen = reading.t[inside], reading.column[inside], reading.continues[inside]
        here = seen >= 0
        self.observed[t[here], column[here]] = mass[seen[here], row[here]] * share[here]
        word = reading.word[inside]
        ending = np.flatnonzero(word >= 0)
        self._ends[inside[ending]] = probability[row[ending], word[ending]] * share[ending]
        empty = np.flatnonzero(node == 0)
        self._end(t[empty], column[empty], probability[row[empty], -1])
        if self._full:
            edges = trie.edges
            sizes = edges.first[node + 1] - edges.first[node]
            of = np.repeat(np.arange(len(inside)), sizes)
            edge = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + edges.first[node[of]]
            values = mass[edges.child[edge], row[of]] * share[of]
            self.table[t[of], column[of], edges.piece[edge]] = values

    def _begin(self, states: IntArray, mass: FloatArray, stop: FloatArray, row: IntArray) -> None:
        """Fill in the pieces that begin the next word, and the end, after complete words.

        Args:
            states: numbers of states in which a word is complete.
            mass: (nodes, R) P(the next word begins with the pieces of a node).
            stop: (R,) P(end).
            row: (states,) the row of each.
        """
        reading = self._reading
        t, column, ends = reading.t[states], reading.column[states], self._ends[states]
        here = reading.begins[states] >= 0
        node = reading.begins[states][here]
        self.observed[t[here], column[here]] = mass[node, row[here]] * ends[here]
        self._end(t, column, stop[row] * ends)
        if self._full:
            edges = self._segmentation.trie.edges
            pieces, children = edges.piece[: edges.first[1]], edges.child[: edges.first[1]]
            self.table[t[:, None], column[:, None], pieces] = mass[children[None, :], row[:, None]] * ends[:, None]

    def _end(self, t: IntArray, column: IntArray, probability: FloatArray) -> None:
        """Fill in the probability of the end at some positions."""
        last = t == len(self.observed) - 1
        self.observed[t[last], column[last]] = probability[last]
        if self._full:
            self.table[t, column, -1] = probability

    def beside_texts(self) -> None:
        """Fill in what follows a word that is complete where the text continues with a longer word."""
        reading = self._reading
        states: dict[Context, list[int]] = {}
        beside = np.flatnonzero((reading.word >= 0) & ~reading.on_text & (self._ends > 0.0))
        for state in beside.tolist():
            words = reading.texts[reading.column[state]][: reading.words[state]]
            context = tuple(self._names[word] for word in (*words, reading.word[state]))
            states.setdefault(context, []).append(state)
        contexts = list(states)
        if not contexts:
            return
        trie = self._segmentation.trie
        for batch in self._words.causal_batches(contexts, self._lengths, dtype=self._dtype):
            *_, last = self._words.next_token_blocks(batch, self._lengths, dtype=self._dtype)
            of = [[state for member in members for state in states[contexts[member]]] for members in batch.members]
            row = np.repeat(np.arange(len(of)), [len(some) for some in of])
            number = np.array([state for some in of for state in some], dtype=np.int64)
            self._begin(number, trie.sums(last.probability[:, :-1]), last.probability[:, -1], row)


def _log(probability: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(probability)


def _dead_after(logs: FloatArray) -> FloatArray:
    """Return log probabilities (T+1, W) with -inf from the first impossible piece of a sentence on."""
    dead = np.logical_or.accumulate(np.isneginf(logs), axis=0)
    return np.where(dead, -np.inf, logs)
