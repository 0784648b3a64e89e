"""Finite pools: documents of one of K automata, with the exact weight of each after every word."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from truesource.grammar.documents._kernels import pool as kernels
from truesource.grammar.documents._kernels.tables import HiddenMoves, KnownMoves
from truesource.grammar.documents.automata import Automata
from truesource.grammar.documents.document import Predictor
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError


class PoolPredictor(Predictor):
    """Bayes' rule over K automata.

    Args:
        languages: (K,) their names.
        automata: K of them.
        prior: (K,) P(language).
        switch: P(the language is drawn again) before each string but the first.

    Raises:
        InputError: there is no language, or no word that two of them have.
    """

    def __init__(self, languages: Sequence[str], automata: Automata, prior: FloatArray, switch: float) -> None:
        check_pool(languages, automata)
        super().__init__(automata.words, automata.end, self._bytes(automata), languages)
        self.automata, self.prior, self.switch = automata, prior, switch
        with np.errstate(divide="ignore"):
            self.log_prior = np.log(prior)

    @staticmethod
    @abstractmethod
    def _bytes(automata: Automata) -> int:
        """Memory of one document."""

    def posterior(self, state: Any) -> FloatArray:
        """As `Predictor.posterior`."""
        return np.asarray(np.exp(state.log_weight[state.rows]))

    def string_lengths(self, high: int) -> tuple[FloatArray, FloatArray, float]:
        """As `Predictor.string_lengths`."""
        return self.automata.length_pmf(high), self.prior, self.switch

    def expected_words(self) -> FloatArray:
        """As `Predictor.expected_words`."""
        return self.automata.expected_words(self.prior)

    def words_by_place(self, high: int) -> FloatArray:
        """As `Predictor.words_by_place`."""
        return self.automata.words_by_place(self.prior, high)


def predictor_of(languages: Sequence[str], automata: Automata, prior: FloatArray, switch: float) -> PoolPredictor:
    """The predictor of a pool, by whether its automata are deterministic; errors are those of `PoolPredictor`."""
    return (KnownPool if automata.known else HiddenPool)(languages, automata, prior, switch)


def check_pool(languages: Sequence[str], automata: Automata) -> None:
    """Refuse pools in which nothing is to be learned from a document.

    Raises:
        InputError: no two of the languages, of which there are more than one, have a word in common.
    """
    if len(languages) > 1 and not automata.in_common().any():
        raise InputError(
            f"the languages of this pool, {languages[0]}, {languages[1]} and so on, have no word in common, so that the"
            " first word tells which it is; take languages that share words"
        )


class KnownState(NamedTuple):
    """Deterministic automata after the words so far."""

    rows: IntArray  #: (n,)
    at: Int32Array  #: (W, K) entries, see `truesource.grammar.documents._kernels.tables`
    log_weight: FloatArray  #: (W, K) ln P(language | words so far), nats


class KnownPool(PoolPredictor):
    """Automata of which the words so far tell the state: 12 bytes a document and language."""

    @staticmethod
    def _bytes(automata: Automata) -> int:
        return 12 * (len(automata.first) - 1)

    @cached_property
    def tables(self) -> KnownMoves:
        """The automata, as kernels take them."""
        automata, k = self.automata, len(self.log_prior)
        shape = (automata.states, len(automata.words))
        after = np.full(shape, -1, dtype=np.int32)
        inner = automata.target >= 0
        after[automata.source[inner], automata.word[inner]] = automata.target[inner]
        stop = np.append(np.nan_to_num(automata.ending, nan=0.0), np.zeros(k))
        go = 1.0 - stop
        stop[: after.size][after.ravel() < 0] = 1.0
        go[: after.size][after.ravel() < 0] = 0.0
        with np.errstate(divide="ignore"):
            logs = np.log(automata.emission), np.log(go), np.log(stop)
        starts = automata.first[:-1].astype(np.int32)
        return KnownMoves(np.append(after, starts), logs[0], automata.emission, logs[1], go, logs[2], stop)

    def begin(self, n: int) -> KnownState:
        """As `Predictor.begin`."""
        k = len(self.log_prior)
        first = self.automata.states * len(self.words)
        at = np.tile(np.arange(first, first + k, dtype=np.int32), (n, 1))
        return KnownState(np.arange(n), at, np.tile(self.log_prior, (n, 1)))

    def law(self, state: KnownState) -> tuple[FloatArray, FloatArray]:
        """As `Predictor.law`."""
        law, stop = kernels.known_words(*state, self.tables)
        return law, stop

    def log_probability(self, state: KnownState, words: IntArray) -> FloatArray:
        """As `Predictor.log_probability`."""
        return np.asarray(kernels.known_probability(state.rows, words, state.at, state.log_weight, self.tables))

    def read(self, state: KnownState, words: IntArray) -> KnownState:
        """As `Predictor.read`."""
        kernels.known_read(state.rows, words, state.at, state.log_weight, self.tables, self.log_prior, self.switch)
        return state

    def draw(self, state: KnownState, uniform: FloatArray) -> IntArray:
        """As `Predictor.draw`."""
        return np.asarray(kernels.known_draw(state.rows, uniform, state.at, state.log_weight, self.tables))


class HiddenState(NamedTuple):
    """Automata with hidden states after the words so far."""

    rows: IntArray  #: (n,)
    belief: FloatArray  #: (W, G) P(state | words so far, language, the string goes on)
    ended: FloatArray  #: (W, K) P(the string ends here | words so far, language)
    log_weight: FloatArray  #: (W, K) ln P(language | words so far), nats


class HiddenPool(PoolPredictor):
    """Automata, such as hidden Markov models, of which words tell only a distribution over states."""

    @staticmethod
    def _bytes(automata: Automata) -> int:
        return 8 * automata.states + 16 * (len(automata.first) - 1)

    @cached_property
    def tables(self) -> HiddenMoves:
        """The automata, as kernels take them."""
        automata, v = self.automata, len(self.words)
        language = np.searchsorted(automata.first, automata.source, side="right") - 1
        place = language * v + automata.word
        order = np.argsort(place, kind="stable")
        bounds = np.searchsorted(place[order], np.arange(len(self.log_prior) * v + 1))
        moves = (automata.source[order], automata.target[order], automata.p[order])
        return HiddenMoves(automata.first, automata.first[:-1].copy(), automata.emission, bounds, *moves)

    def begin(self, n: int) -> HiddenState:
        """As `Predictor.begin`."""
        belief = np.zeros((n, self.automata.states))
        belief[:, self.automata.first[:-1]] = 1.0
        weight = np.tile(self.log_prior, (n, 1))
        return HiddenState(np.arange(n), belief, np.zeros(weight.shape), weight)

    def law(self, state: HiddenState) -> tuple[FloatArray, FloatArray]:
        """As `Predictor.law`."""
        law, stop = kernels.hidden_words(*state, self.tables)
        return law, stop

    def log_probability(self, state: HiddenState, words: IntArray) -> FloatArray:
        """As `Predictor.log_probability`."""
        rows, *buffers = state
        return np.asarray(kernels.hidden_probability(rows, words, *buffers, self.tables))

    def read(self, state: HiddenState, words: IntArray) -> HiddenState:
        """As `Predictor.read`."""
        rows, *buffers = state
        kernels.hidden_read(rows, words, *buffers, self.tables, self.log_prior, self.switch)
        return state

    def draw(self, state: HiddenState, uniform: FloatArray) -> IntArray:
        """As `Predictor.draw`."""
        rows, *buffers = state
        return np.asarray(kernels.hidden_draw(rows, uniform, *buffers, self.tables))
