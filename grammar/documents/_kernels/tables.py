"""The automata of a pool, as kernels take them: G states of K languages in one row, V words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray


class KnownMoves(NamedTuple):
    """Automata of which the words so far tell the state; a state has one probability that the string ends there."""

    start: Int32Array  #: (K,) state before the first word
    after: Int32Array  #: (V, G) state after a word, itself where that is impossible
    log_word: FloatArray  #: (V, G) ln P(the string goes on with the word | state), nats
    word: FloatArray  #: (V, G) the same as probabilities
    log_stop: FloatArray  #: (G,) ln P(the string ends | state), nats
    stop: FloatArray  #: (G,)


class HiddenMoves(NamedTuple):
    """Automata of which the words so far tell a distribution over states."""

    first: IntArray  #: (K+1,) first state of each language
    start: IntArray  #: (K,) state in which it begins
    emission: FloatArray  #: (G, V) P(word | state)
    bounds: IntArray  #: (K V + 1,) moves of each language and word
    source: Int32Array  #: (T,)
    target: Int32Array  #: (T,) -1: the string ends
    p: FloatArray  #: (T,)
