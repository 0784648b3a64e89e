"""Words that continue the beginnings of sentences in another way, and the distributions of the word after each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar._kernels.rules import CellPass
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray

#: fields of a pass by position, first those without one after all words
BY_POSITION = ("conditional", "scales", "stop", "totals", "smallest")


class OtherWords(NamedTuple):
    """K words that continue beginnings of W sentences in another way: by sentence, the longest beginnings first."""

    column: IntArray  #: (K,) the sentence
    after: IntArray  #: (K,) number of its words that come before
    word: Int32Array  #: (K,) number of the word

    @classmethod
    def of(cls, places: Sequence[tuple[int, int, int]]) -> OtherWords:
        """Return triples of a sentence, the number of its words that come before, and a word."""
        table = np.array(places, dtype=np.int64).reshape(-1, 3)
        return cls(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].astype(np.int32))

    def take(self, some: IntArray | BoolArray) -> OtherWords:
        """Return some of the words."""
        return OtherWords(self.column[some], self.after[some], self.word[some])


class AfterOthers(NamedTuple):
    """Certified results for D of K other words."""

    number: IntArray  #: (D,) numbers of the words
    possible: BoolArray  #: (D,) whether the words up to this one have positive probability
    log_stop: FloatArray  #: (D,) ln P(end | the words up to this one), nats
    starts: FloatArray  #: (S, D) weight of each symbol starting after the word

    @classmethod
    def none(cls, size: int) -> AfterOthers:
        """Return no results, for a grammar of ``size`` symbols."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0), np.zeros((size, 0)))

    def table(self, emission: csr_matrix[np.float64]) -> FloatArray:
        """Return the distributions after the words, (D, V+1), the end last; rows of impossible words are zero.

        Args:
            emission: P(word | symbol), by word (V, S).
        """
        table = np.concatenate([(emission @ self.starts).T, np.exp(self.log_stop)[:, None]], axis=1)
        table[~self.possible] = 0.0
        return table


def after_others(
    run: CellPass, words: Int32Array, others: OtherWords, certified: Callable[[Int32Array, CellPass], BoolArray]
) -> AfterOthers:
    """Return the results for other words that a pass has, and that are certified.

    Args:
        run: a pass over ``words`` (n, W) and the K other words, which are its further columns.
        words: -1 unknown.
        others: the other words.
        certified: return which sentences of a pass are right.
    """
    sentences, branches = run.columns(slice(words.shape[1])), run.columns(slice(words.shape[1], None))
    right = [some[certified(read, alone)] for some, read, alone in _passes_alone(sentences, branches, words, others)]
    number = np.sort(np.concatenate([np.zeros(0, np.int64), *right]))
    after = others.after[number]
    with np.errstate(divide="ignore"):
        log_stop = np.log(branches.stop[after + 1, number])
    return AfterOthers(number, branches.conditional[after, number] > 0.0, log_stop, run.after[number].T)


def _passes_alone(
    sentences: CellPass, branches: CellPass, words: Int32Array, others: OtherWords
) -> Iterator[tuple[IntArray, Int32Array, CellPass]]:
    """Yield passes over the words up to each other word, as if each had been made alone.

    Yields:
        Numbers of other words after equally many words, all words up to them, and their pass; without other words
        with too many cells, or after a sentence with a capped entry.
    """
    there = (branches.cells >= 0) & ~sentences.capped[:2, others.column].any(axis=0)
    for after in np.unique(others.after[there]).tolist():
        some = np.flatnonzero(there & (others.after == after))
        before, last = sentences.columns(others.column[some]), branches.columns(some)
        joined = {
            name: np.concatenate([getattr(before, name)[..., :n, :], getattr(last, name)[..., n : n + 1, :]], axis=-2)
            for name, n in zip(BY_POSITION, (after, after, after + 1, after + 1, after + 1), strict=True)
        }
        read = np.concatenate([words[:after, others.column[some]], others.word[some][None, :]])
        yield some, read, last._replace(**joined)
