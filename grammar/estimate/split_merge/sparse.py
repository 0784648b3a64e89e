"""The rules of a grammar with substates that are not zero, listed by base rule and pair of children."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from truesource.grammar.estimate.split_merge._kernels.arrays import Entries
from truesource.grammar.estimate.split_merge.parameters import Layout, Parameters, SplitTree
from truesource.grammar.estimate.split_merge.smooth import substates
from truesource.grammar.support.arrays import FloatArray, IntArray

#: Smaller probabilities are dormant after an M-step. Their expected counts, together, are below the number of
#: rules times the number of tokens times this, so the passes over the trees leave them out of the likelihood; but
#: they are asked for their derivatives now and then, so that they can grow again.
DORMANT = 1e-15
Weight = float | FloatArray


@dataclass(frozen=True, eq=False)
class SparseRules:
    """A grammar with substates as the loops over trees want it; the order is that of the flat array of `Parameters`."""

    layout: Layout
    trees: tuple[SplitTree, ...]  #: (K,) split tree of each symbol
    entries: Entries

    @classmethod
    def of(cls, parameters: Parameters, dtype: DTypeLike = np.float64) -> SparseRules:
        """The entries that are not zero."""
        from truesource.grammar.estimate.split_merge._kernels import rules as kernels

        rules = parameters.layout.rules
        n_pairs, n_entries = np.zeros((2, len(rules)), dtype=np.int64)
        kernels.count_entries(rules, parameters.prob, n_pairs, n_entries)
        first_pair = np.concatenate([[0], np.cumsum(n_pairs)])
        pair = np.empty((int(first_pair[-1]), 2), dtype=np.int32)
        first_entry = np.empty(len(pair) + 1, dtype=np.int64)
        substate = np.empty(int(n_entries.sum()), dtype=np.int32)
        entries = Entries(
            first_pair, pair, first_entry, first_entry[1:], substate, np.empty(len(substate), dtype=dtype)
        )
        kernels.sparse(rules, parameters.prob, entries)
        return cls(parameters.layout, parameters.trees, entries)

    @property
    def prob(self) -> NDArray[Any]:
        """Probability of each entry, (E,) float64 or float32."""
        return self.entries.prob

    @cached_property
    def sizes(self) -> IntArray:
        """Substates of parent, left and right child of each base rule, (R, 3)."""
        return np.ascontiguousarray(self.layout.rules[:, 1:4])

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Base rule, and child pair, of each entry, (E,)."""
        pair = np.repeat(np.arange(len(self.entries.pair)), np.diff(self.entries.first_entry))
        return np.repeat(np.arange(len(self.sizes)), np.diff(self.entries.first_pair))[pair], pair

    @property
    def rows(self) -> IntArray:
        """Row of each entry, (E,): the substate of its parent among those of all symbols."""
        first: IntArray = self.layout.rules[self.places[0], 4]
        return first + self.entries.substate

    def flat(self, values: NDArray[Any]) -> FloatArray:
        """Values of the entries at their places in the flat array of `Parameters`, zero elsewhere."""
        from truesource.grammar.estimate.split_merge._kernels import rules as kernels

        result = np.zeros(self.layout.size)
        kernels.dense(self.layout.rules, self.entries, values, result)
        return result

    def parameters(self) -> Parameters:
        """The same grammar with every probability at its place."""
        return Parameters(self.layout, self.flat(self.prob), self.trees)

    def maximised(self, counts: FloatArray, smallest: float, *, slept: int = 1) -> SparseRules:
        """The M-step: expected counts over their row's sum; what falls below ``smallest`` is dropped.

        A row without any count keeps its probabilities. Dormant entries have a count after ``slept`` iterations
        without any: what falls then falls as if by the same factor in each. They keep their probabilities if 0.
        """
        from truesource.grammar.estimate.split_merge._kernels import rules as kernels

        new = Entries(*map(np.empty_like, self.entries))
        n_pairs, n = kernels.maximise(self.layout.rules, self.entries, counts, slept, smallest, DORMANT, new)
        sizes = (len(new.first_pair), n_pairs, n_pairs + 1, n_pairs, n, n)
        arrays: Iterable[Any] = new
        return replace(self, entries=Entries(*(array[:size] for array, size in zip(arrays, sizes, strict=True))))

    def awake(self) -> SparseRules:
        """The same with no entry dormant."""
        return self._replaced(end_live=self.entries.first_entry[1:])

    def astype(self, dtype: DTypeLike) -> SparseRules:
        """The same in float64 or float32."""
        return self._replaced(prob=self.prob.astype(dtype))

    def _replaced(self, **arrays: NDArray[Any]) -> SparseRules:
        return replace(self, entries=self.entries._replace(**arrays))

    def smoothed(self, rules: Weight, lexicon: Weight, smallest: float) -> SparseRules:
        """Interpolate each substate's probabilities with the mean of its siblings', as `smooth.smooth` does.

        Args:
            rules: weight of the mean in binary and unary rules; one for all, or (rows,).
            lexicon: weight of the mean in lexical rules, likewise.
            smallest: probabilities below are dropped.
        """
        from truesource.grammar.estimate.split_merge._kernels import rules as kernels

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
    """For each substate, one past the last of its top branch; a branch is a run of substates."""
    if isinstance(tree, int):
        return [1]
    branches = [substates(branch) for branch in tree]
    return [branch[-1] + 1 for branch in branches for _ in branch]
