"""The rules of a grammar with substates that are not zero, listed by base rule and pair of children."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from truesource.grammar.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.estimate.split_merge.parameters import Layout, Parameters, SplitTree
from truesource.grammar.estimate.split_merge.smooth import substates

#: Smaller probabilities are dormant after an M-step. Their expected counts, together, are below the number of
#: rules times the number of tokens times this, so the passes over the trees leave them out of the likelihood; but
#: they are asked for their derivatives now and then, so that they can grow again.
DORMANT = 1e-15
Weight = float | FloatArray


@dataclass(frozen=True, eq=False)
class SparseRules:
    """A grammar with substates as the loops over trees want it.

    The child pairs (b, c) of base rule r are ``first_pair[r]`` to ``first_pair[r + 1]``, an absent child being
    substate 0; the parents' substates and probabilities of pair q are ``first_entry[q]`` to
    ``first_entry[q + 1]``, the dormant ones last. Otherwise the order is that of the flat array of `Parameters`.
    """

    layout: Layout
    trees: tuple[SplitTree, ...]  #: (K,) split tree of each symbol
    first_pair: IntArray  #: (R + 1,)
    pair: Int32Array  #: (P, 2)
    first_entry: IntArray  #: (P + 1,)
    substate: Int32Array  #: (E,)
    prob: NDArray[Any]  #: (E,) float64 or float32
    end_live: IntArray  #: (P,) one past the last entry of a pair that is not dormant

    @classmethod
    def of(cls, parameters: Parameters, dtype: DTypeLike = np.float64) -> SparseRules:
        """The entries that are not zero."""
        from truesource.grammar.estimate.split_merge._kernels import rules as _kernels_rules

        rules = parameters.layout.rules
        n_pairs, n_entries = np.zeros((2, len(rules)), dtype=np.int64)
        _kernels_rules.count_entries(rules, parameters.prob, n_pairs, n_entries)
        first_pair = np.concatenate([[0], np.cumsum(n_pairs)])
        pair = np.empty((int(first_pair[-1]), 2), dtype=np.int32)
        first_entry = np.empty(len(pair) + 1, dtype=np.int64)
        substate = np.empty(int(n_entries.sum()), dtype=np.int32)
        prob = np.empty(len(substate), dtype=dtype)
        _kernels_rules.sparse(rules, parameters.prob, pair, first_entry, substate, prob)
        return cls(parameters.layout, parameters.trees, first_pair, pair, first_entry, substate, prob, first_entry[1:])

    @cached_property
    def sizes(self) -> IntArray:
        """Substates of parent, left and right child of each base rule, (R, 3)."""
        return np.ascontiguousarray(self.layout.rules[:, 1:4])

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """What the loops over trees take: sizes, first_pair, pair, first_entry, end_live, substate, prob."""
        return self.sizes, self.first_pair, self.pair, self.first_entry, self.end_live, self.substate, self.prob

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Base rule, and child pair, of each entry, (E,)."""
        pair = np.repeat(np.arange(len(self.pair)), np.diff(self.first_entry))
        return np.repeat(np.arange(len(self.sizes)), np.diff(self.first_pair))[pair], pair

    @property
    def rows(self) -> IntArray:
        """Row of each entry, (E,): the substate of its parent among those of all symbols."""
        first: IntArray = self.layout.rules[self.places[0], 4]
        return first + self.substate

    def flat(self, values: NDArray[Any]) -> FloatArray:
        """Values of the entries at their places in the flat array of `Parameters`, zero elsewhere."""
        from truesource.grammar.estimate.split_merge._kernels import rules as _kernels_rules

        result = np.zeros(self.layout.size)
        where = (self.layout.rules, self.first_pair, self.pair, self.first_entry, self.substate)
        _kernels_rules.dense(*where, values, result)
        return result

    def parameters(self) -> Parameters:
        """The same grammar with every probability at its place."""
        return Parameters(self.layout, self.flat(self.prob), self.trees)

    def maximised(self, counts: FloatArray, smallest: float, *, slept: int = 1) -> SparseRules:
        """The M-step: expected counts over their row's sum; what falls below ``smallest`` is dropped.

        A row without any count keeps its probabilities. Dormant entries have a count after ``slept`` iterations
        without any: what falls then falls as if by the same factor in each. They keep their probabilities if 0.
        """
        from truesource.grammar.estimate.split_merge._kernels import rules as _kernels_rules

        old = (self.first_pair, self.pair, self.first_entry, self.end_live, self.substate, self.prob)
        first_pair, pair = np.empty_like(self.first_pair), np.empty_like(self.pair)
        first_entry, end_live = np.empty_like(self.first_entry), np.empty_like(self.end_live)
        substate, prob = np.empty_like(self.substate), np.empty_like(self.prob)
        new = (first_pair, pair, first_entry, end_live, substate, prob)
        pairs, entries = _kernels_rules.maximise(self.layout.rules, *old, counts, slept, smallest, DORMANT, *new)
        return replace(
            self,
            first_pair=first_pair,
            pair=pair[:pairs],
            first_entry=first_entry[: pairs + 1],
            end_live=end_live[:pairs],
            substate=substate[:entries],
            prob=prob[:entries],
        )

    def awake(self) -> SparseRules:
        """The same with no entry dormant."""
        return replace(self, end_live=self.first_entry[1:])

    def exactly(self) -> SparseRules:
        """The same in float64."""
        return replace(self, prob=self.prob.astype(np.float64))

    def smoothed(self, rules: Weight, lexicon: Weight, smallest: float) -> SparseRules:
        """Interpolate each substate's probabilities with the mean of its siblings', as `smooth.smooth` does.

        Args:
            rules: weight of the mean in binary and unary rules; one for all, or (rows,).
            lexicon: weight of the mean in lexical rules, likewise.
            smallest: probabilities below are dropped.
        """
        from truesource.grammar.estimate.split_merge._kernels import rules as _kernels_rules

        weight = np.stack([np.broadcast_to(part, self.layout.n_rows) for part in (rules, lexicon)])
        lexical = (self.layout.table.rules[:, 3] >= 0).astype(np.int64)
        siblings = [
            first + end
            for first, tree in zip(self.layout.first_row.tolist(), self.trees, strict=False)
            for end in _branch_ends(tree)
        ]
        most = int(np.sum(np.diff(self.first_pair) * self.sizes[:, 0]))
        first_entry = np.empty_like(self.first_entry)
        substate, scores = np.empty(most, dtype=np.int32), np.empty(most)
        old = (self.first_pair, self.pair, self.first_entry, self.substate, self.prob)
        new = (first_entry, substate, scores)
        n = _kernels_rules.smooth(self.layout.rules, lexical, *old, weight, np.array(siblings), *new)
        prob = scores[:n].astype(self.prob.dtype)
        wider = replace(self, first_entry=first_entry, end_live=first_entry[1:], substate=substate[:n], prob=prob)
        return wider.maximised(scores[:n], smallest)


def _branch_ends(tree: SplitTree) -> list[int]:
    """For each substate, one past the last of its top branch; a branch is a run of substates."""
    if isinstance(tree, int):
        return [1]
    branches = [substates(branch) for branch in tree]
    return [branch[-1] + 1 for branch in branches for _ in branch]
