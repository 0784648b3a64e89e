"""The rules of a grammar with substates: their layout and nonzero probabilities; M-step and smoothing.

Smoothing moves the rules of a substate towards the mean over its siblings in the split tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from truesource.grammar._kernels.rules import Entries
from truesource.grammar.estimate.relative_frequency import RuleTable
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray

#: Substates of a label: its number for a leaf, a pair for a split that was kept.
SplitTree = int | list["SplitTree"]
#: Smaller probabilities are dormant after an M-step. Their total expected count is below the number of rules times the
#: number of tokens times this, so the likelihood leaves them out; their derivatives are computed now and then, so that
#: they can grow again.
DORMANT = 1e-15
TINY = 1e-40  #: smaller probabilities count as zero
LEAP = 10.0  #: largest factor of one EM step that over-relaxation extrapolates


@dataclass(frozen=True)
class Block:
    """Adjacent base rules of one shape: one binary or unary rule, or all lexical rules of a symbol."""

    parent: int  #: symbol
    left: int  #: symbol, -1 for none
    right: int  #: symbol, -1 for none
    shape: tuple[int, int, int, int]  #: rules, substates of left, right and parent (1 for an absent child)
    start: int  #: first place
    stop: int  #: one past the last


@dataclass(frozen=True, eq=False)
class Layout:
    """The places of all rules possible with given numbers of substates, whether their probability is zero or not.

    A base rule A -> B C has a block of places of shape ``(n_B, n_C, n_A)`` (an absent child counts as one substate). A
    row is a substate of a parent; the rules of a row sum to one.
    """

    table: RuleTable
    substates: tuple[int, ...]  #: (K,) number of substates of each symbol

    @cached_property
    def rules(self) -> IntArray:
        """One line per base rule, (R, 5): first place, n_A, n_B, n_C, first row of A."""
        sizes = np.array([*self.substates, 1], dtype=np.int64)  # the last is for index -1: no child
        dims = sizes[self.table.rules[:, :3]]
        volumes = dims.prod(axis=1)
        starts = np.cumsum(volumes) - volumes
        return np.column_stack([starts, dims, self.first_row[self.table.rules[:, 0]]])

    @property
    def first_lexical(self) -> int:
        """Place of the first lexical rule."""
        return int(self.rules[self.table.n_phrasal, 0])

    def place(self, rule: NDArray[Any], left: NDArray[Any], right: NDArray[Any], parent: NDArray[Any]) -> IntArray:
        """Return places of rules of these base rules and substates; the substate of an absent child is 0."""
        start, n_parent, _, n_right = self.rules[rule, :4].T
        result: IntArray = start + (left * n_right + right) * n_parent + parent
        return result

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
        """Number of places."""
        return int(self.rules[-1, 0] + self.rules[-1, 1:4].prod())

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks in the order of their places."""
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

    @property
    def lexical_blocks(self) -> list[Block]:
        """Blocks of lexical rules, which come last; one for each symbol that has any."""
        return [block for block in self.blocks if block.left < 0]


def substates(tree: SplitTree) -> list[int]:
    """Return the substates under a split tree, left to right."""
    if isinstance(tree, int):
        return [tree]
    return [leaf for branch in tree for leaf in substates(branch)]


Weight = float | FloatArray


@dataclass(frozen=True, eq=False)
class SparseRules:
    """A grammar with substates for loops over trees: nonzero rules, by base rule and children."""

    layout: Layout
    trees: tuple[SplitTree, ...]  #: (K,) split tree of each symbol
    entries: Entries

    @classmethod
    def initial(cls, table: RuleTable) -> SparseRules:
        """Return the grammar of relative frequencies, with one substate each."""
        n = len(table.symbols)
        return cls.at(Layout(table, (1,) * n), (0,) * n, np.arange(len(table.rules)), table.relative_frequencies)

    @classmethod
    def at(cls, layout: Layout, trees: tuple[SplitTree, ...], place: IntArray, prob: FloatArray) -> SparseRules:
        """Return the grammar with these entries, none dormant, in ascending order of their places in the layout."""
        rules = layout.rules
        rule = np.searchsorted(rules[:, 0], place, side="right") - 1
        children, substate = np.divmod(place - rules[rule, 0], rules[rule, 1])
        first = np.flatnonzero(np.diff(place - substate, prepend=-1))
        pair = np.stack(np.divmod(children[first], rules[rule[first], 3]), axis=1).astype(np.int32)
        first_pair = np.searchsorted(rule[first], np.arange(len(rules) + 1))
        first_entry = np.append(first, len(place))
        return cls(
            layout, trees, Entries(first_pair, pair, first_entry, first_entry[1:], substate.astype(np.int32), prob)
        )

    @property
    def prob(self) -> NDArray[Any]:
        """Probability of each entry, (E,) float64 or float32."""
        return self.entries.prob

    @cached_property
    def sizes(self) -> IntArray:
        """Substates of parent, left and right child of each base rule, (R, 3)."""
        return np.ascontiguousarray(self.layout.rules[:, 1:4])

    @cached_property
    def places(self) -> tuple[Int32Array, Int32Array]:
        """Base rule, and child pair, of each entry, (E,)."""
        pair = np.repeat(np.arange(len(self.entries.pair), dtype=np.int32), np.diff(self.entries.first_entry))
        rule = np.repeat(np.arange(len(self.sizes), dtype=np.int32), np.diff(self.entries.first_pair))
        return rule[pair], pair

    @property
    def rows(self) -> IntArray:
        """Row of each entry, (E,): the number of its parent's substate among the substates of all symbols."""
        first: IntArray = self.layout.rules[self.places[0], 4]
        return first + self.entries.substate

    @property
    def place(self) -> IntArray:
        """Place of each entry in the layout, (E,)."""
        rule, pair = self.places
        left, right = self.entries.pair[pair].T
        return self.layout.place(rule, left, right, self.entries.substate)

    def normalised(self) -> SparseRules:
        """Return each probability over its row's sum, in float64, the entries in the order of their places.

        Results below `TINY` are dropped, to avoid denormal numbers; likelihoods are unchanged in float64.
        """
        place = self.place
        order = np.argsort(place, kind="stable")
        rows, scores = self.rows[order], self.prob[order].astype(np.float64)
        prob = scores / np.bincount(rows, scores)[rows]
        large = prob >= TINY
        return SparseRules.at(self.layout, self.trees, place[order][large], prob[large])

    def lexical(self, values: NDArray[Any]) -> FloatArray:
        """Return the values of the entries at the places of the layout's lexical rules; zero elsewhere."""
        first = self.layout.first_lexical
        place = self.place
        result = np.zeros(self.layout.size - first)
        result[place[place >= first] - first] = values[place >= first]
        return result

    def with_lexicon(self, table: RuleTable, lexical: FloatArray) -> SparseRules:
        """Combine this grammar's phrasal rules with another table's lexical rules.

        Args:
            table: base rules; its phrasal rules are the same.
            lexical: probabilities of its lexical rules, in the order of their places.
        """
        layout = Layout(table, self.layout.substates)
        place = self.place
        phrasal = place < layout.first_lexical
        there = np.flatnonzero(lexical)
        place = np.concatenate([place[phrasal], layout.first_lexical + there])
        return SparseRules.at(layout, self.trees, place, np.concatenate([self.prob[phrasal], lexical[there]]))

    def maximised(self, counts: FloatArray, smallest: float, *, slept: int = 1) -> SparseRules:
        """Return the M-step: expected counts over their row's sum; results below ``smallest`` are dropped.

        A row without any count keeps its probabilities. Dormant entries have a count after ``slept`` iterations without
        one: a decrease is taken to have the same factor in each. They keep their probabilities if ``slept`` is 0.
        """
        from truesource.grammar.estimate.split_merge import _kernels as kernels

        new = Entries(*map(np.empty_like, self.entries))
        n_pairs, n = kernels.maximise(self.layout.rules, self.entries, counts, slept, smallest, DORMANT, new)
        sizes = (len(new.first_pair), n_pairs, n_pairs + 1, n_pairs, n, n)
        arrays: Iterable[Any] = new
        return replace(self, entries=Entries(*(array[:size] for array, size in zip(arrays, sizes, strict=True))))

    def relaxed(self, counts: FloatArray, relaxation: float) -> FloatArray:
        """Return counts whose M-step is over-relaxed: it changes log probabilities by ``relaxation`` times EM's step.

        Rows are normalised afterwards (Salakhutdinov and Roweis 2003, on the log scale). A step counts as a factor of
        `LEAP` at most, lest an entry near zero becomes the only one of its row.
        """
        rows = self.rows
        expected = np.bincount(rows, counts, self.layout.n_rows)[rows] * self.prob
        change = np.divide(counts, expected, out=np.ones_like(counts), where=(counts > 0.0) & (expected > 0.0))
        result: FloatArray = counts * np.minimum(change, LEAP) ** (relaxation - 1.0)
        return result

    def awake(self) -> SparseRules:
        """Return a copy of this grammar with no entry dormant."""
        return self._replaced(end_live=self.entries.first_entry[1:])

    def astype(self, dtype: DTypeLike) -> SparseRules:
        """Return a copy of this grammar in float64 or float32."""
        return self._replaced(prob=self.prob.astype(dtype))

    def _replaced(self, **arrays: NDArray[Any]) -> SparseRules:
        return replace(self, entries=self.entries._replace(**arrays))

    def smoothed(self, rules: Weight, lexicon: Weight, smallest: float) -> SparseRules:
        """Interpolate each substate's probabilities with the mean of its siblings.

        Siblings of a substate are the others under the same top branch of the symbol's split tree; a substate without
        siblings is unchanged.

        Args:
            rules: weight of the mean in binary and unary rules; one for all, or (rows,).
            lexicon: weight of the mean in lexical rules, likewise.
            smallest: smaller probabilities are dropped.
        """
        from truesource.grammar.estimate.split_merge import _kernels as kernels

        weight = np.stack([np.broadcast_to(part, self.layout.n_rows) for part in (rules, lexicon)])
        lexical = (self.layout.table.rules[:, 3] >= 0).astype(np.int64)
        siblings = [
            first + end
            for first, tree in zip(self.layout.first_row.tolist(), self.trees, strict=False)
            for end in _branch_ends(tree)
        ]
        most = int(np.sum(np.diff(self.entries.first_pair) * self.sizes[:, 0]))
        first_entry = np.empty_like(self.entries.first_entry)
        substate, scores = np.empty(most, dtype=np.int32), np.empty(most)
        new = (first_entry, substate, scores)
        n = kernels.smooth(self.layout.rules, lexical, self.entries, weight, np.array(siblings), *new)
        prob = scores[:n].astype(self.prob.dtype)
        wider = self._replaced(first_entry=first_entry, end_live=first_entry[1:], substate=substate[:n], prob=prob)
        return wider.maximised(scores[:n], smallest)


def _branch_ends(tree: SplitTree) -> list[int]:
    """Return for each substate one past the last substate of its top branch; a branch is a run of substates."""
    if isinstance(tree, int):
        return [1]
    branches = [substates(branch) for branch in tree]
    return [branch[-1] + 1 for branch in branches for _ in branch]
