"""The rule probabilities of a grammar with substates, in one flat array with one block per base rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from truesource.grammar.estimate.rules import RuleTable
from truesource.grammar.support.arrays import FloatArray, IntArray

#: Substates of a label: its number for a leaf, a pair for a split that was kept.
SplitTree = int | list["SplitTree"]


@dataclass(frozen=True)
class Block:
    """Neighbouring base rules of one shape: one binary or unary rule, or all lexical rules of a symbol."""

    parent: int  #: symbol
    left: int  #: symbol, -1 for none
    right: int  #: symbol, -1 for none
    shape: tuple[int, int, int, int]  #: rules, substates of left, right and parent (1 for an absent child)
    start: int  #: first position in the flat array
    stop: int  #: one past the last


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the probabilities of each base rule stand.

    A base rule A -> B C owns a block of shape ``(n_B, n_C, n_A)`` (an absent child counts as one
    substate). A row is a substate of a parent; the rules of a row sum to one.
    """

    table: RuleTable
    substates: tuple[int, ...]  #: (K,) number of substates of each symbol

    @cached_property
    def rules(self) -> IntArray:
        """One line per base rule, (R, 5): position in the flat array, n_A, n_B, n_C, first row of A."""
        sizes = np.array([*self.substates, 1], dtype=np.int64)  # the last one serves index -1: no child
        dims = sizes[self.table.rules[:, :3]]
        volumes = dims.prod(axis=1)
        starts = np.cumsum(volumes) - volumes
        return np.column_stack([starts, dims, self.first_row[self.table.rules[:, 0]]])

    @cached_property
    def first_row(self) -> IntArray:
        """First row of each symbol, (K + 1,); the last entry is the number of rows."""
        return np.concatenate([[0], np.cumsum(self.substates)]).astype(np.int64)

    @property
    def n_rows(self) -> int:
        """Number of substates of all symbols."""
        return int(self.first_row[-1])

    @property
    def size(self) -> int:
        """Length of the flat array."""
        return int(self.rules[-1, 0] + self.rules[-1, 1:4].prod())

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks, in the order of the flat array."""
        lexical = self.table.rules[:, 3] >= 0
        new = np.ones(len(lexical), dtype=bool)
        new[1:] = ~(lexical[1:] & lexical[:-1] & (self.table.rules[1:, 0] == self.table.rules[:-1, 0]))
        first = np.flatnonzero(new)
        blocks: list[Block] = []
        for i, j in zip(first.tolist(), [*first[1:].tolist(), len(new)], strict=True):
            parent, left, right = self.table.rules[i, :3].tolist()
            start, n_parent, n_left, n_right = self.rules[i, :4].tolist()
            shape = (j - i, n_left, n_right, n_parent)
            blocks.append(Block(parent, left, right, shape, start, start + (j - i) * n_left * n_right * n_parent))
        return tuple(blocks)


@dataclass(frozen=True, eq=False)
class Parameters:
    """A grammar with substates while it is trained."""

    layout: Layout
    prob: FloatArray  #: (layout.size,) probability of each fine rule
    trees: tuple[SplitTree, ...]  #: (K,) split tree of each symbol

    @classmethod
    def initial(cls, table: RuleTable) -> Parameters:
        """Relative frequencies, one substate each."""
        n = len(table.symbols)
        return cls(Layout(table, (1,) * n), table.relative_frequencies, (0,) * n)

    @classmethod
    def of_scores(cls, layout: Layout, scores: FloatArray, trees: tuple[SplitTree, ...]) -> Parameters:
        """Scores over their row's sum, in place; a row without any score stays without rules."""
        from truesource.grammar.estimate.split_merge._kernels import rules as kernels

        kernels.normalise(layout.rules, scores, scores, np.zeros(layout.n_rows))
        return cls(layout, scores, trees)

    def blocks(self) -> Iterator[tuple[Block, FloatArray]]:
        """Each block with its probabilities as a view of its shape."""
        for block in self.layout.blocks:
            yield block, self.prob[block.start : block.stop].reshape(block.shape)

    def normalised(self, scores: FloatArray) -> Parameters:
        """The same layout with ``scores`` over their row's sum: the M-step, when they are expected counts.

        A row without any score keeps its probabilities; results below 1e-40 become 0, which spares
        the loops from denormal numbers and changes no likelihood within float64.
        """
        from truesource.grammar.estimate.split_merge._kernels import rules as kernels

        prob = self.prob.copy()
        kernels.normalise(self.layout.rules, scores, prob, np.zeros(self.layout.n_rows))
        return replace(self, prob=prob)

    def row_totals(self, scores: FloatArray) -> FloatArray:
        """Sum of ``scores`` over the rules of each row, (rows,)."""
        from truesource.grammar.estimate.split_merge._kernels import rules as kernels

        totals = np.zeros(self.layout.n_rows)
        kernels.row_totals(self.layout.rules, scores, totals)
        return totals
