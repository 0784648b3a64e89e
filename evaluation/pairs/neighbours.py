"""Which words can stand next to each other in sentences of a grammar, at all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import IntArray


class Neighbours:
    """Possible bigrams, from the words that each symbol can begin and end with; probabilities play no part.

    Args:
        pcfg: the grammar, whose symbols all occur in sentences and have an end.
    """

    def __init__(self, pcfg: PCFG) -> None:
        parent, left, right = pcfg.binary.T.astype(np.int64)
        above, below = pcfg.unary.T.astype(np.int64)
        n, words = len(pcfg.symbols), len(pcfg.terminals)
        symbol, word = pcfg.lexical.T.astype(np.int64)
        lexical = _boolean(symbol, word, (n, words))
        self._ids = pcfg.word_ids
        self._start = pcfg.start
        self._left, self._right = left, right
        together = np.concatenate([parent, above])
        self._first = _closed(_boolean(together, np.concatenate([left, below]), (n, n)), lexical)  #: (S, V)
        self._last = _closed(_boolean(together, np.concatenate([right, below]), (n, n)), lexical)  #: (S, V)
        self._known: dict[tuple[int, int], bool] = {}

    def possible(self, sentence: Sequence[str]) -> bool:
        """Whether all neighbours in a sentence can be neighbours, and its ends the ends of one."""
        first, last = self._ids[sentence[0]], self._ids[sentence[-1]]
        ends = _has(self._first, first, self._start) and _has(self._last, last, self._start)
        return ends and all(self.can_follow(before, after) for before, after in pairwise(sentence))

    def can_follow(self, before: str, after: str) -> bool:
        """Whether one word can stand right after another."""
        key = self._ids[before], self._ids[after]
        if key not in self._known:
            ends, begins = (np.zeros(self._last.shape[0], dtype=bool) for _ in range(2))
            ends[_column(self._last, key[0])] = True
            begins[_column(self._first, key[1])] = True
            self._known[key] = bool((ends[self._left] & begins[self._right]).any())
        return self._known[key]


def _boolean(row: IntArray, column: IntArray, shape: tuple[int, int]) -> csr_matrix[np.float64]:
    return _signs(csr_matrix((np.ones(len(row)), (row, column)), shape=shape))


def _signs(matrix: csr_matrix[np.float64]) -> csr_matrix[np.float64]:
    """Ones where a matrix is positive."""
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def _closed(steps: csr_matrix[np.float64], found: csr_matrix[np.float64]) -> csc_matrix[np.float64]:
    """Words that symbols reach by any number of steps, (S, V), from the steps (S, S) and their own words (S, V)."""
    while True:
        more = _signs(csr_matrix(steps @ found + found))
        if more.nnz == found.nnz:
            return csc_matrix(more)
        found = more


def _column(matrix: csc_matrix[np.float64], word: int) -> IntArray:
    return np.asarray(matrix.indices[matrix.indptr[word] : matrix.indptr[word + 1]], dtype=np.int64)


def _has(matrix: csc_matrix[np.float64], word: int, symbol: int) -> bool:
    return bool((_column(matrix, word) == symbol).any())
