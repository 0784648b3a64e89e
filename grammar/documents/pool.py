"""Finite pools: documents of one of K automata, with the exact posterior of each after every word."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from truesource.grammar.documents._kernels import pool as kernels
from truesource.grammar.documents._kernels.tables import DeterministicMoves, HiddenMoves
from truesource.grammar.documents.automata import Automata
from truesource.grammar.documents.document import WordPredictor, check_pool, with_language
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray


class PoolPredictor(WordPredictor):
    """A predictor by Bayes' rule over K automata.

    Args:
        languages: (K,) their names.
        automata: K of them.
        prior: (K,) P(language).
        switch: P(the language is drawn again) before each string but the first.

    Raises:
        InputError: there is no language, or no word that two of them share.
    """

    def __init__(self, languages: Sequence[str], automata: Automata, prior: FloatArray, switch: float) -> None:
        check_pool(languages, bool(automata.in_common().any()))
        super().__init__(automata.words, automata.end, self._bytes(automata), languages)
        self.automata, self.prior, self.switch = automata, prior, switch
        with np.errstate(divide="ignore"):
            self.log_prior = np.log(prior)

    @staticmethod
    @abstractmethod
    def _bytes(automata: Automata) -> int:
        """Return the memory of one document, bytes."""

    @override
    def posterior(self, state: Any) -> FloatArray:
        return np.asarray(np.exp(state.log_weight[state.rows]))

    @override
    def knowing(self, language: int) -> PoolPredictor:
        return with_language(self, language)

    @override
    def string_lengths(self, high: int) -> tuple[FloatArray, FloatArray, float]:
        return self.automata.length_pmf(high), self.prior, self.switch

    @override
    def expected_words(self) -> FloatArray:
        return self.automata.expected_words(self.prior)

    @override
    def words_by_place(self, high: int) -> FloatArray:
        return self.automata.words_by_place(self.prior, high)


def predictor_of(languages: Sequence[str], automata: Automata, prior: FloatArray, switch: float) -> PoolPredictor:
    """Return the predictor of a pool, by whether its automata are deterministic; errors as in `PoolPredictor`."""
    return (DeterministicPool if automata.deterministic else HiddenPool)(languages, automata, prior, switch)


class DeterministicState(NamedTuple):
    """Deterministic automata after the words so far."""

    rows: IntArray  #: (n,)
    at: Int32Array  #: (W, K) state of each
    log_weight: FloatArray  #: (W, K) ln P(language | words so far), nats
    scored: IntArray  #: (W,) word whose probabilities ``joint`` holds; -1 none
    total: FloatArray  #: (W,) ln P(that word | words so far), nats
    joint: FloatArray  #: (W, K) ln P(language, that word | words so far), nats


class DeterministicPool(PoolPredictor):
    """Deterministic automata: 20 bytes a document and language."""

    @staticmethod
    def _bytes(automata: Automata) -> int:
        return 20 * (len(automata.first) - 1)

    @cached_property
    def tables(self) -> DeterministicMoves:
        """The automata as kernels take them; a state here is a state with its probability that the string ends."""
        automata, g = self.automata, self.automata.states
        after = np.full((g, len(self.words)), -1)
        inner = automata.target >= 0
        after[automata.source[inner], automata.word[inner]] = automata.target[inner]
        possible = automata.emission > 0.0
        starts = automata.first[:-1]
        mantissa, exponent = np.frexp(np.append(automata.ending[possible], np.zeros(len(starts))))
        ending = np.ldexp(np.round(mantissa * 2.0**44), exponent - 44)  # equal up to rounding
        going = np.append(automata.going[possible], np.ones(len(starts)))
        small = np.where(going < kernels.NEARLY_NONE, going, 0.0)  # lost by rounding in `ending`
        keys = np.stack([np.append(after[possible], starts), ending, small], axis=1)
        states, number = np.unique(keys, axis=0, return_inverse=True)
        source, stop = states[:, 0].astype(np.int64), states[:, 1]
        on = np.where(states[:, 2] > 0.0, states[:, 2], 1.0 - stop)
        stop[source < 0], on[source < 0] = 1.0, 0.0
        entered = np.zeros(after.shape, dtype=np.int32)
        entered[possible] = number.ravel()[: -len(starts)]
        emission = np.where(source[:, None] < 0, 0.0, automata.emission[source])
        word = emission * on[:, None]
        possible_words = (emission > 0.0) & (on > 0.0)[:, None]
        moved = np.where(possible_words, entered[source], np.arange(len(source))[:, None]).astype(np.int32)
        with np.errstate(divide="ignore"):
            logs = np.log(word), np.log(stop)
            rare = possible_words & (word < kernels.SMALLEST)  # the product underflows float64
            logs[0][rare] = (np.log(emission) + np.log(on)[:, None])[rare]
        return DeterministicMoves(
            start=number.ravel()[-len(starts) :].astype(np.int32),
            after=np.ascontiguousarray(moved.T),
            log_word=np.ascontiguousarray(logs[0].T),
            word=np.ascontiguousarray(word.T),
            log_stop=logs[1],
            stop=stop,
        )

    @override
    def begin(self, n: int) -> DeterministicState:
        shape = (n, len(self.log_prior))
        at, weight = np.tile(self.tables.start, (n, 1)), np.tile(self.log_prior, (n, 1))
        return DeterministicState(np.arange(n), at, weight, np.full(n, -1), np.empty(n), np.empty(shape))

    @override
    def law(self, state: DeterministicState) -> tuple[FloatArray, FloatArray]:
        law, stop = kernels.deterministic_words(state.rows, state.at, state.log_weight, self.tables)
        return law, stop

    @override
    def log_probability(self, state: DeterministicState, words: IntArray) -> FloatArray:
        rows, *buffers = state
        return np.asarray(kernels.deterministic_probability(rows, words, *buffers, self.tables))

    @override
    def read(self, state: DeterministicState, words: IntArray) -> DeterministicState:
        rows, *buffers = state
        kernels.deterministic_read(rows, words, *buffers, self.tables, self.log_prior, self.switch)
        return state

    @override
    def draw(self, state: DeterministicState, uniform: FloatArray) -> IntArray:
        return np.asarray(kernels.deterministic_draw(state.rows, uniform, state.at, state.log_weight, self.tables))


class HiddenState(NamedTuple):
    """Automata with hidden states after the words so far."""

    rows: IntArray  #: (n,)
    belief: FloatArray  #: (W, G) P(state | words so far, language, the string continues)
    ended: FloatArray  #: (W, K) P(the string ends here | words so far, language)
    going: FloatArray  #: (W, K) P(it continues), 1 - ended at full precision
    log_weight: FloatArray  #: (W, K) ln P(language | words so far), nats


class HiddenPool(PoolPredictor):
    """Automata with hidden states, such as hidden Markov models: words determine a distribution over states."""

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

    @override
    def begin(self, n: int) -> HiddenState:
        belief = np.zeros((n, self.automata.states))
        belief[:, self.automata.first[:-1]] = 1.0
        weight = np.tile(self.log_prior, (n, 1))
        return HiddenState(np.arange(n), belief, np.zeros(weight.shape), np.ones(weight.shape), weight)

    @override
    def law(self, state: HiddenState) -> tuple[FloatArray, FloatArray]:
        law, stop = kernels.hidden_words(*state, self.tables)
        return law, stop

    @override
    def log_probability(self, state: HiddenState, words: IntArray) -> FloatArray:
        rows, *buffers = state
        return np.asarray(kernels.hidden_probability(rows, words, *buffers, self.tables))

    @override
    def read(self, state: HiddenState, words: IntArray) -> HiddenState:
        rows, *buffers = state
        kernels.hidden_read(rows, words, *buffers, self.tables, self.log_prior, self.switch)
        return state

    @override
    def draw(self, state: HiddenState, uniform: FloatArray) -> IntArray:
        rows, *buffers = state
        return np.asarray(kernels.hidden_draw(rows, uniform, *buffers, self.tables))
