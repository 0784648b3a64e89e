"""Documents of automata with a known graph and unknown probabilities: Dirichlet rows, integrated out.

The probability of a word in a state is (its count there so far + a) / (count of the state + a times its words), where a
is the concentration of the Dirichlet distribution of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from truesource.grammar.documents.document import WordPredictor
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

LARGEST_COUNTS = 10**7  #: counts of one document


def context_moves(order: int, vocabulary: int) -> Int32Array:
    """Return the moves between contexts: the last ``order`` words, or all words of a shorter string so far, (S, V).

    Shorter contexts come first, contexts of one length in the order of their words; state 0 is before the first word.
    """
    targets, first = [], 0
    for length in range(order + 1):
        size = vocabulary**length
        followers = np.arange(size * vocabulary)
        longest = length == order
        targets.append(first + followers % size if longest else first + size + followers)
        first += size
    return np.concatenate(targets).reshape(-1, vocabulary).astype(np.int32)


class RowsState(NamedTuple):
    """Counts of W documents after the words so far."""

    rows: IntArray  #: (n,)
    at: Int32Array  #: (W,) state
    begun: Int32Array  #: (W,) 1 if the string has a word
    counts: Int32Array  #: (W, S, V) how often each word was read in each state
    sums: Int32Array  #: (W, S)


class DirichletRows(WordPredictor):
    """A predictor whose states have word probabilities drawn from a symmetric Dirichlet distribution.

    Args:
        words: (V,)
        target: (S, V) state after a word; -1 if the word is impossible. State 0 comes first.
        concentration: parameter of the Dirichlet distributions.
        mean_length: mean length of strings, which end with the same probability after each word.
        alike: all words play the same role in every state, so that they are equally frequent.

    Raises:
        InputError: a document needs too many counts.
    """

    def __init__(
        self, words: Sequence[str], target: Int32Array, concentration: float, mean_length: float, *, alike: bool
    ) -> None:
        if target.size > LARGEST_COUNTS:
            raise InputError(
                f"a document would need {target.size:,} counts, more than {LARGEST_COUNTS:,}; take fewer states or"
                " words",
                code="too-large",
            )
        super().__init__(words, 1.0 / mean_length, 4 * target.size)
        self.target, self.alike = target, alike
        self.rows = np.where(target >= 0, concentration, 0.0)
        self.row_sums = self.rows.sum(axis=1)

    @override
    def begin(self, n: int) -> RowsState:
        none = np.zeros(n, dtype=np.int32)
        counts = np.zeros((n, *self.target.shape), dtype=np.int32)
        return RowsState(np.arange(n), none, none.copy(), counts, np.zeros(counts.shape[:2], dtype=np.int32))

    def _stop(self, state: RowsState) -> FloatArray:
        assert self.end is not None
        return np.where(state.begun[state.rows] > 0, self.end, 0.0)

    @override
    def law(self, state: RowsState) -> tuple[FloatArray, FloatArray]:
        at, stop = state.at[state.rows], self._stop(state)
        share = (1.0 - stop) / (state.sums[state.rows, at] + self.row_sums[at])
        return (state.counts[state.rows, at] + self.rows[at]) * share[:, None], stop

    @override
    def log_probability(self, state: RowsState, words: IntArray) -> FloatArray:
        at, stop, v = state.at[state.rows], self._stop(state), len(self.words)
        word = np.clip(words, 0, v - 1)
        weight = (state.counts[state.rows, at, word] + self.rows[at, word]) * (1.0 - stop)
        probabilities = np.where(words == v, stop, weight / (state.sums[state.rows, at] + self.row_sums[at]))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(words < 0, 0.0, probabilities)))

    @override
    def read(self, state: RowsState, words: IntArray) -> RowsState:
        goes_on = words < len(self.words)
        rows, word = state.rows[goes_on], words[goes_on]
        at = state.at[rows]
        state.counts[rows, at, word] += 1
        state.sums[rows, at] += 1
        state.at[rows] = self.target[at, word]
        state.begun[rows] = 1
        state.at[state.rows[~goes_on]] = 0
        state.begun[state.rows[~goes_on]] = 0
        return state

    @override
    def expected_words(self) -> FloatArray:
        assert self.end is not None
        return np.asarray(self.words_by_place(1)[0] / self.end)

    def words_by_place(self, high: int) -> FloatArray:
        """Return the words by position, see `WordPredictor.words_by_place`.

        Raises:
            InputError: words are not alike: a state that recurs has the same unknown row again.
        """
        if not self.alike:
            raise InputError(
                "expected counts of words have no exact value if the rows of an automaton are unknown; sample"
                " documents and count the words",
                code="missing-ability",
            )
        return np.full((high, len(self.words)), 1.0 / len(self.words))
