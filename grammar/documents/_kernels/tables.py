"""The automata of a pool, as kernels take them: G states of K languages in one row, V words.

A state after a word is an entry ``state before * V + word``; after the last of these stand K entries for the beginnings
of strings.
"""

from __future__ import annotations

from typing import NamedTuple

from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray


class KnownMoves(NamedTuple):
    """Automata of which the words so far tell the state."""

    after: Int32Array  #: (G V + K,) state that an entry leads to; -1 where no word follows
    log_word: FloatArray  #: (G, V) ln P(word | state, the string goes on), nats
    word: FloatArray  #: (G, V) the same as probabilities
    log_go: FloatArray  #: (G V + K,) ln P(the string goes on | entry), nats
    go: FloatArray
    log_stop: FloatArray  #: (G V + K,) ln P(the string ends | entry), nats
    stop: FloatArray


class HiddenMoves(NamedTuple):
    """Automata of which the words so far tell a distribution over states."""

    first: IntArray  #: (K+1,) first state of each language
    start: IntArray  #: (K,) state in which it begins
    emission: FloatArray  #: (G, V) P(word | state)
    bounds: IntArray  #: (K V + 1,) moves of each language and word
    source: Int32Array  #: (T,)
    target: Int32Array  #: (T,) -1: the string ends
    p: FloatArray  #: (T,)
