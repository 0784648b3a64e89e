"""Next-piece distributions of a group of sentences, filled in as the distributions of words come."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import DTypeLike

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch, in_threads
from truesource.grammar.inference.causal import ExactCausal
from truesource.grammar.inference.other_words import OtherWords
from truesource.grammar.pieces.reading import PieceReading, read_pieces
from truesource.grammar.pieces.segmentation import PieceTrie, Segmentation
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray

Words = tuple[int, ...]


class PieceTables:
    """Probabilities of pieces at all positions of W sentences of at most T pieces.

    Args:
        words: exact inference of the language of words.
        segmentation: their pieces.
        sentences: piece numbers of each, -1 unknown.
        lengths: condition.
        dtype: of charts.
        full: fill whole distributions too.
    """

    def __init__(
        self,
        words: ExactCausal,
        segmentation: Segmentation,
        sentences: Sequence[Int32Array],
        lengths: LengthRange | None,
        dtype: DTypeLike,
        *,
        full: bool = False,
    ) -> None:
        self._words, self._segmentation = words, segmentation
        self._lengths, self._dtype, self._full = lengths, dtype, full
        self._reading: PieceReading = read_pieces(segmentation, sentences)
        self._sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        n, width = int(self._sizes.max()), len(sentences)
        self.observed = np.zeros((n + 1, width))  #: P(observed piece, or the end | its left context); 0 after the end
        self.table = np.zeros((n + 1, width, len(segmentation.pieces) + 1) if full else (0, 0, 0))
        self._ends = np.zeros(len(self._reading.t))  # P(the word of the pieces so far | they begin the current word)
        self._longer = self._within_longer_words() if full else {}
        self._after(self._along_texts())

    def _within_longer_words(self) -> dict[int, dict[Words, int]]:
        """Return words that are complete where the text continues with a longer word: by sentence, with their state.

        Words before one are a part of the key.
        """
        reading = self._reading
        result: dict[int, dict[Words, int]] = {}
        for state in np.flatnonzero((reading.word >= 0) & ~reading.on_text).tolist():
            column = int(reading.column[state])
            before = reading.texts[column][: reading.words[state]]
            result.setdefault(column, {})[*before, int(reading.word[state])] = state
        return result

    def _along_texts(self) -> dict[Words, list[int]]:
        """Fill in what follows from distributions after words of the texts, and after others computed with them.

        Returns:
            States with other words, by all words up to them, of which distributions are still needed.
        """
        reading = self._reading
        columns: dict[Words, list[int]] = {}
        for column, words in enumerate(reading.texts):
            columns.setdefault(words, []).append(column)
        first = self._words.next_token([], self._lengths)
        probability = np.append(first.probability, first.stop)[None]
        trie = self._segmentation.first_trie
        start = np.zeros(len(reading.texts), dtype=np.int64)
        self._fill(trie, trie.sums(probability[:, :-1]), probability, start, np.flatnonzero(reading.words == 0))
        texts = [words for words in columns if words]
        left: dict[Words, list[int]] = {}
        results = [self._others_of([columns.get((), [])])]
        if texts:

            def task(batch: Batch) -> dict[tuple[int, Words], list[int]]:
                rows = [[c for member in members for c in columns[texts[member]]] for members in batch.members]
                return self._along(batch, rows)

            work = self._words.causal_batches(self._spelled(texts), self._lengths, dtype=self._dtype)
            results += [result for _, result in in_threads(task, work)]
        for result in results:
            for (_, words), states in result.items():
                left.setdefault(words, []).extend(states)
        return left

    def _spelled(self, texts: Sequence[Words]) -> list[list[str]]:
        names = self._segmentation.words
        return [[names[word] for word in words] for words in texts]

    def _others_of(self, columns: Sequence[Sequence[int]]) -> dict[tuple[int, Words], list[int]]:
        """Return the states with other words than the texts, by text and all words up to these.

        Args:
            columns: numbers of the sentences with each text.
        """
        others: dict[tuple[int, Words], list[int]] = {}
        for row, some in enumerate(columns):
            for column in some:
                for words, state in self._longer.get(column, {}).items():
                    others.setdefault((row, words), []).append(state)
        return others

    def _along(self, batch: Batch, columns: Sequence[Sequence[int]]) -> dict[tuple[int, Words], list[int]]:
        """Fill in what follows from a batch of texts.

        Args:
            batch: the texts, W of them.
            columns: (W,) numbers of the sentences with each text.

        Returns:
            The other words that were not computed with the texts, as `_others_of` has them.
        """
        reading, later = self._reading, self._segmentation.trie
        rows = np.full(len(reading.texts), -1, dtype=np.int64)
        for row, some in enumerate(columns):
            rows[list(some)] = row
        states = np.flatnonzero(rows[reading.column] >= 0)
        by_words = states[np.argsort(reading.words[states], kind="stable")]
        starts = np.searchsorted(reading.words[by_words], np.arange(len(batch.words) + 2))
        before, *of_words = (by_words[a:b] for a, b in pairwise(starts.tolist()))
        states_of = self._others_of(columns)
        others = sorted(states_of, key=lambda other: (other[0], -len(other[1])))
        blocks, done, table = self._words.blocks_beside(
            batch,
            OtherWords.of([(row, len(words) - 1, words[-1]) for row, words in others]),
            self._lengths,
            first=1,
            dtype=self._dtype,
        )
        for block, inside in zip(blocks, of_words, strict=True):
            mass, complete = later.sums(block.probability[:, :-1]), before[reading.on_text[before]]
            self._begin(complete, mass, block.probability[:, -1], rows[reading.column[complete]])
            self._fill(later, mass, block.probability, rows, inside)
            before = inside
        if len(done):
            self._complete([states_of.pop(others[k]) for k in done.tolist()], table)
        return states_of

    def _fill(
        self, trie: PieceTrie, mass: FloatArray, probability: FloatArray, rows: IntArray, inside: IntArray
    ) -> None:
        """Fill in the pieces that continue a word, and the end of its pieces.

        Args:
            trie: of the pieces of the word.
            mass: (nodes, R) P(the word begins with the pieces of a node).
            probability: (R, V+1) distributions of the word.
            rows: (W,) the row of each sentence.
            inside: numbers of states in the word.
        """
        reading = self._reading
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
        last = t == self._sizes[column]
        self.observed[t[last], column[last]] = probability[last]
        if self._full:
            self.table[t, column, -1] = probability

    def _complete(self, states: Sequence[Sequence[int]], probability: FloatArray) -> None:
        """Fill in what follows words that are complete.

        Args:
            states: numbers of the states with each of the D words, and the words before it.
            probability: (D, V+1) distributions of the next word.
        """
        row = np.repeat(np.arange(len(states)), [len(some) for some in states])
        number = np.array([state for some in states for state in some], dtype=np.int64)
        possible = self._ends[number] > 0.0
        mass = self._segmentation.trie.sums(probability[:, :-1])
        self._begin(number[possible], mass, probability[:, -1], row[possible])

    def _after(self, left: dict[Words, list[int]]) -> None:
        """Fill in what follows other words that were not computed with the texts: see `_along_texts`."""
        needed = {words: states for words, states in left.items() if (self._ends[states] > 0.0).any()}
        of = list(needed.values())

        def task(batch: Batch) -> None:
            (last,) = self._words.next_token_blocks(batch, self._lengths, first=len(batch.words), dtype=self._dtype)
            states = [[state for member in members for state in of[member]] for members in batch.members]
            self._complete(states, last.probability)

        if needed:
            work = self._words.causal_batches(self._spelled(list(needed)), self._lengths, dtype=self._dtype)
            for _ in in_threads(task, work):
                pass
