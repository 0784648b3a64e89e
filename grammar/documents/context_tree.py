"""Documents of variable-order Markov chains of unknown contexts and probabilities: context-tree weighting.

A chain has a tree of contexts, the last word first. Each context of fewer than D words is split by the word before it
with a given probability. Each context that is not split has a row of word probabilities, drawn from a symmetric
Dirichlet distribution. The sum over all trees and rows takes D steps a word (Willems, Shtarkov and Tjalkens 1995). A
context that reaches the beginning of its string is not split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from truesource.grammar.documents.document import WordPredictor
from truesource.grammar.documents.rows import LARGEST_COUNTS
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError


class TreeState(NamedTuple):
    """Trees of W documents after the words so far."""

    rows: IntArray  #: (n,)
    history: Int32Array  #: (W, D) last words of the string, the latest first
    length: IntArray  #: (W,) words of the string so far
    counts: Int32Array  #: (W, N, V) how often a word came after the context of a node
    log_ratio: FloatArray  #: (W, N) ln P(words, node not split) - ln P(words, node split), nats


class ContextTree(WordPredictor):
    """Predictor by context-tree weighting, see the module.

    Args:
        words: (V,)
        depth: D, words of the longest context.
        split: P(a context is split).
        concentration: parameter of the Dirichlet distributions.
        mean_length: mean length of strings, which end with the same probability after each word.

    Raises:
        InputError: a document needs too many counts.
    """

    def __init__(
        self, words: Sequence[str], depth: int, split: float, concentration: float, mean_length: float
    ) -> None:
        v = len(words)
        #: number of the first node whose context has d words, D+1, and of the first that begins a string with d words
        self._whole = np.cumsum([0, *(v**d for d in range(depth + 1))])
        self._short = self._whole[-1] + np.cumsum([0, *(v**d for d in range(depth))])
        nodes = int(self._short[-1])
        if nodes * v > LARGEST_COUNTS:
            raise InputError(
                f"a document would need {nodes * v:,} counts, more than {LARGEST_COUNTS:,}; lower depth or vocabulary",
                code="too-large",
            )
        super().__init__(words, 1.0 / mean_length, 4 * nodes * v + 8 * nodes)
        self.depth, self.nodes, self.concentration = depth, nodes, concentration
        with np.errstate(divide="ignore"):
            self._begin_ratio = float(np.log1p(-split) - np.log(split))

    @override
    def begin(self, n: int) -> TreeState:
        counts = np.zeros((n, self.nodes, len(self.words)), dtype=np.int32)
        ratio = np.full((n, self.nodes), self._begin_ratio)
        return TreeState(
            np.arange(n), np.zeros((n, self.depth), dtype=np.int32), np.zeros(n, dtype=np.int64), counts, ratio
        )

    def _path(self, state: TreeState) -> tuple[IntArray, IntArray]:
        """Return the nodes of the current context, (n, D+1), root first, and the depth of its leaf, (n,)."""
        length, v = state.length[state.rows], len(self.words)
        path = np.zeros((len(state.rows), self.depth + 1), dtype=np.int64)
        code = np.zeros(len(state.rows), dtype=np.int64)
        for d in range(1, self.depth + 1):
            begins = length == d - 1  # the context is the whole string so far
            whole = code + state.history[state.rows, d - 1] * v ** (d - 1)
            path[:, d] = np.where(begins, self._short[d - 1] + code, self._whole[d] + whole)
            code = whole
        return path, np.minimum(length + 1, self.depth)

    def _mixed(self, state: TreeState) -> tuple[IntArray, IntArray, list[FloatArray], list[FloatArray]]:
        """Return the path, its leaf's depth, and per depth (n, V) P(word) by the node's row and by its subtree."""
        path, leaf = self._path(state)
        below = np.zeros((len(path), len(self.words)))
        rows: list[FloatArray] = []
        mixed: list[FloatArray] = []
        for d in range(self.depth, -1, -1):
            counts = state.counts[state.rows, path[:, d]] + self.concentration
            row = counts / counts.sum(axis=1, keepdims=True)
            ratio = state.log_ratio[state.rows, path[:, d]][:, None]
            stay = 1.0 / (1.0 + np.exp(-np.clip(ratio, -700.0, 700.0)))
            below = np.where((d >= leaf)[:, None], row, stay * row + (1.0 - stay) * below)
            rows.insert(0, row)
            mixed.insert(0, below)
        return path, leaf, rows, mixed

    def _stop(self, state: TreeState) -> FloatArray:
        assert self.end is not None
        return np.where(state.length[state.rows] > 0, self.end, 0.0)

    @override
    def law(self, state: TreeState) -> tuple[FloatArray, FloatArray]:
        stop = self._stop(state)
        return self._mixed(state)[3][0] * (1.0 - stop)[:, None], stop

    @override
    def log_probability(self, state: TreeState, words: IntArray) -> FloatArray:
        law, stop = self.law(state)
        probabilities = np.concatenate([law, stop[:, None]], axis=1)[np.arange(len(words)), words]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(words < 0, 0.0, probabilities)))

    @override
    def read(self, state: TreeState, words: IntArray) -> TreeState:
        on = np.flatnonzero(words < len(self.words))
        going = state._replace(rows=state.rows[on])
        rows, word, every = going.rows, words[on], np.arange(len(on))
        path, leaf, by_row, mixed = self._mixed(going)
        for d in range(self.depth + 1):
            inner = d < leaf
            if inner.any():
                moved = np.log(by_row[d][every, word]) - np.log(mixed[d + 1][every, word])
                state.log_ratio[rows[inner], path[inner, d]] += moved[inner]
            there = d <= leaf
            state.counts[rows[there], path[there, d], word[there]] += 1
        if self.depth:
            state.history[rows, 1:] = state.history[rows, :-1]
            state.history[rows, 0] = word
        state.length[rows] += 1
        state.length[np.delete(state.rows, on)] = 0
        return state

    @override
    def expected_words(self) -> FloatArray:
        # all words are equally frequent
        assert self.end is not None
        return np.asarray(self.words_by_place(1)[0] / self.end)

    @override
    def words_by_place(self, high: int) -> FloatArray:
        # all words are equally frequent
        return np.full((high, len(self.words)), 1.0 / len(self.words))
