"""All n-grams of a corpus up to some length, with their counts, as a trie in flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truesource.grammar.support.arrays import Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.lmtrain.architectures.ngram._kernels import count as kernels
from truesource.lmtrain.architectures.ngram.stream import Stream

MOST_NODES = 2**31 - 1  #: n-grams are 32-bit numbers


@dataclass(frozen=True)
class Trie:
    """n-grams of length 0 to N, numbered by length, then by context, then by last token.

    Number 0 is the empty n-gram; 1 to K are the tokens of the vocabulary in their order, whether they occur or not.
    The continuations of one n-gram stand together and sorted, so that they are found by bisection.
    """

    level: Int32Array  #: (N + 1,) number of the first n-gram of each length 0 to N
    start: Int32Array  #: (C + 1,) number of the first continuation of each of the C n-grams shorter than N; then G
    word: Int32Array  #: (G,) last token of each n-gram; -1 for the empty one
    suffix: Int32Array  #: (G,) number of the n-gram that is left without the first token; -1 for the empty one
    count: Int32Array  #: (G,) how often each occurs, or as `adjust` counts; 0 for the empty one and ``<bos>`` alone

    @property
    def order(self) -> int:
        """N, the greatest length."""
        return len(self.level) - 1

    @property
    def n_tokens(self) -> int:
        """K, size of the vocabulary with its special tokens."""
        return int(self.start[1]) - 1

    @property
    def n_ngrams(self) -> int:
        """How many different n-grams of all lengths occur."""
        return int(np.count_nonzero(self.count))

    def bounds(self, length: int) -> tuple[int, int]:
        """Numbers of the first n-gram of a length, and of the one after the last."""
        end = len(self.word) if length == self.order else int(self.level[length + 1])
        return int(self.level[length]), end

    def check(self) -> None:
        """Make sure that every number points where it should.

        Raises:
            ValueError: one does not.
        """
        rows = (self.level, self.start, self.word, self.suffix, self.count)
        if any(row.dtype != np.int32 or row.ndim != 1 for row in rows) or len(self.level) < 2:
            raise ValueError("a trie is made of rows of 32-bit numbers")
        n_nodes, n_contexts = len(self.word), int(self.level[-1])
        if [len(row) for row in rows[1:]] != [n_contexts + 1, n_nodes, n_nodes, n_nodes] or n_nodes < 2:
            raise ValueError("the rows of a trie do not fit each other")
        if self.level[:2].tolist() != [0, 1] or (np.diff(self.level) < 0).any():
            raise ValueError("the lengths of a trie are out of order")
        ends = [self.bounds(length)[1] for length in range(self.order + 1)]
        if (
            self.start[self.level].tolist() != ends
            or (np.diff(self.start) < 0).any()
            or self.count.min() < 0
            or self.word[1:].min() < 0
            or self.word.max() >= self.n_tokens
            or (self.word[1 : 1 + self.n_tokens] != np.arange(self.n_tokens)).any()
        ):
            raise ValueError("the numbers of a trie are out of order")
        for length in range(1, self.order + 1):
            (low, high), (first, end) = self.bounds(length - 1), self.bounds(length)
            if end > first and (self.suffix[first:end].min() < low or self.suffix[first:end].max() >= high):
                raise ValueError("an n-gram is linked to one that is not shorter by a token")


def count_ngrams(stream: Stream, order: int, *, n_tokens: int, bos: int, eos: int) -> Trie:
    """Count all n-grams of 1 to ``order`` tokens that a stream contains within its sentences.

    ``<bos>`` stands once before a sentence and is never counted as an event; at the beginning of a sentence contexts
    are shorter (as in SRILM and KenLM). Time grows with tokens times ``order``; memory in bytes is about 12 a token
    and 16 a stored n-gram.

    Args:
        stream: the corpus.
        order: greatest length, 1 or more.
        n_tokens: size of the vocabulary with its special tokens.
        bos: number of ``<bos>``.
        eos: number of ``<eos>``.

    Raises:
        InputError: there are 2^31 different n-grams or more.
    """
    tokens = stream.tokens
    words = [np.full(1, -1, np.int32), np.arange(n_tokens, dtype=np.int32)]
    suffixes = [np.full(1, -1, np.int32), np.zeros(n_tokens, np.int32)]
    starts = [np.ones(1, np.int32)]
    level = [0, 1]
    with meter(f"count n-grams of up to {order} tokens", order) as bar:
        places, counts = kernels.by_token(tokens, n_tokens)
        numbers = [np.zeros(1, np.int32), counts]
        node = tokens + np.int32(1)
        bar.advance()
        for length in range(1, order):
            last, counts = words[-1], numbers[-1]
            kept, found = kernels.refine(tokens, places, counts, last, length, eos, n_tokens)
            first = level[-1] + len(last)
            if first + found > MOST_NODES:
                raise InputError(f"more than {MOST_NODES} different n-grams; lower the order or use fewer sentences")
            start = np.empty(len(last), np.int32)
            longer = [np.empty(found, np.int32) for _ in range(3)]
            kernels.extend(tokens, places[:kept], counts, last, length, eos, first, node, start, *longer)
            for table, row in zip((words, numbers, suffixes), longer, strict=True):
                table.append(row)
            starts.append(start)
            level.append(first)
            bar.advance()
    del places, node
    numbers[1][bos] = 0
    starts.append(np.full(1, level[-1] + len(words[-1]), np.int32))
    return Trie(np.array(level, np.int32), *(_joined(table) for table in (starts, words, suffixes, numbers)))


def _joined(table: list[Int32Array]) -> Int32Array:
    """One array; the parts are let go."""
    array = np.concatenate(table)
    table.clear()
    return array
