"""Charts of single sentences cell by cell, as `truesource.grammar.inference._kernels.cells` takes them.

n is the number of words of a sentence, S that of the symbols of the grammar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray


class Cells(NamedTuple):
    """The inside chart of one sentence, in the order in which its cells were made."""

    begin: Int32Array  #: first word of each cell's span
    end: Int32Array  #: the word after its last
    symbol: Int32Array
    value: FloatArray
    same_end: Int32Array  #: the cell made before it with the same end and symbol; -1 none
    same_begin: Int32Array  #: likewise with the same beginning and symbol


class ColumnSums(NamedTuple):
    """Sums for the spans (i, j) with one end j."""

    sums: FloatArray  #: (n, S)
    listed: Int32Array  #: (n, S) symbols whose sum is not zero
    n_listed: Int32Array  #: (n,) how many


class Begun(NamedTuple):
    """Weights of symbols that start after some words, a row of tokens owed for each that is not zero."""

    rows: FloatArray  #: (rows, owed)
    symbol: Int32Array  #: (rows,)
    row: Int32Array  #: (n+1, S) number of the row, -1 none
    until: IntArray  #: (n+1,) rows of position j end here; they begin where those of j-1 end
    omega: FloatArray  #: (S, owed) weights of what can start next, before the closure
    listed: Int32Array  #: (S,) symbols of `omega` that are not zero
    n_listed: IntArray  #: (1,) how many
    marked: BoolArray  #: (S,) whether listed


class Waiting(NamedTuple):
    """Additions to spans whose column comes later."""

    before: Int32Array  #: the one added before to the same column, -1 none
    begin: Int32Array  #: first word of the span
    symbol: Int32Array
    amount: FloatArray


class Space(NamedTuple):
    """Room that all sentences of a call use, left as it was."""

    column: ColumnSums
    begun: Begun
    last_end: Int32Array  #: (n+1, S) last cell with this end and symbol, -1 none
    last_begin: Int32Array  #: (n, S) last cell with this beginning and symbol, -1 none
    closed: FloatArray  #: (S,) one span's weights, unary chains included
    listed: Int32Array  #: (S,) symbols that `closed` holds
    waiting: Waiting
