"""What the samplers take of a grammar: named tuples of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray


class NumberedRules(NamedTuple):
    """Rules of all kinds, numbered in one row: binary, then unary, then lexical."""

    left: Int32Array  #: (T,) left or only child, a word number for lexical rules
    right: Int32Array  #: (T,) right child of binary rules
    logp: FloatArray  #: (T,) nats
    n_binary: int
    n_unary: int


class Choices(NamedTuple):
    """Rules to choose from, by symbol: those of A are ``options[bounds[A]:bounds[A + 1]]``."""

    options: Int32Array  #: (C,) rule numbers
    bounds: IntArray  #: (S + 1,)
    sums: FloatArray  #: (C,) running weights of each symbol's rules, or a row of them for each number of tokens
