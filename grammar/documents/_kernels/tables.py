"""The automata of a pool, as kernels take them: all G states of K languages, V words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray


class DeterministicMoves(NamedTuple):
    """Deterministic automata; in each state, the string ends with one probability."""

    start: Int32Array  #: (K,) state before the first word
    after: Int32Array  #: (V, G) state after a word, the state itself if the word is impossible
    log_word: FloatArray  #: (V, G) ln P(the string continues with the word | state), nats
    word: FloatArray  #: (V, G) P(the string continues with the word | state)
    log_stop: FloatArray  #: (G,) ln P(the string ends | state), nats
    stop: FloatArray  #: (G,) P(the string ends | state)


class HiddenMoves(NamedTuple):
    """Automata with hidden states."""

    first: IntArray  #: (K+1,) first state of each language
    start: IntArray  #: (K,) state initial state of each language
    emission: FloatArray  #: (G, V) P(word | state)
    bounds: IntArray  #: (K V + 1,) moves of each language and word
    source: Int32Array  #: (T,)
    target: Int32Array  #: (T,) -1: the string ends
    p: FloatArray  #: (T,)
