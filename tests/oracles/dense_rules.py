"""Grammars with substates as one flat array with a place for every probability, zero or not: slow and obvious."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from truesource.grammar.estimate.relative_frequency import RuleTable
from truesource.grammar.estimate.split_merge.estep import Forest, Likelihood, expected_entries
from truesource.grammar.estimate.split_merge.parameters import Block, Layout, SparseRules, SplitTree, substates
from truesource.grammar.support.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class DenseRules:
    """A grammar in training with every probability at its place."""

    layout: Layout
    prob: FloatArray  #: (layout.size,) probability of each fine rule
    trees: tuple[SplitTree, ...]  #: (K,) split tree of each symbol

    @classmethod
    def of(cls, rules: SparseRules) -> DenseRules:
        return cls(rules.layout, flat(rules, rules.prob), rules.trees)

    @classmethod
    def initial(cls, table: RuleTable) -> DenseRules:
        return cls.of(SparseRules.initial(table))

    def sparse(self, dtype: DTypeLike = np.float64) -> SparseRules:
        place = np.flatnonzero(self.prob)
        return SparseRules.at(self.layout, self.trees, place, self.prob[place]).astype(dtype)

    def blocks(self) -> Iterator[tuple[Block, FloatArray]]:
        """Each block with its probabilities as a view of its shape."""
        for block in self.layout.blocks:
            yield block, self.prob[block.start : block.stop].reshape(block.shape)

    def row_sums(self) -> FloatArray:
        """Sum over the rules of each row."""
        result = np.zeros(self.layout.n_rows)
        for block, values in self.blocks():
            first = self.layout.first_row[block.parent]
            result[first : first + block.shape[3]] += values.sum(axis=(0, 1, 2))
        return result

    def normalised(self, scores: FloatArray) -> DenseRules:
        """The M-step, where ``scores`` are expected counts; a row without any keeps its probabilities."""
        result = replace(self, prob=scores.copy())
        totals = result.row_sums()
        for (block, values), (_, before) in zip(result.blocks(), self.blocks(), strict=True):
            first = self.layout.first_row[block.parent]
            total = totals[first : first + block.shape[3]]
            values[...] = np.where(total > 0.0, values / np.where(total > 0.0, total, 1.0), before)
        return result


def flat(rules: SparseRules, values: NDArray[Any]) -> FloatArray:
    """Values of the entries at their places, zero elsewhere, spelt out one by one."""
    result = np.zeros(rules.layout.size)
    entries = rules.entries
    for r, (start, n_parent, _, n_right, _) in enumerate(rules.layout.rules.tolist()):
        for q in range(entries.first_pair[r], entries.first_pair[r + 1]):
            left, right = entries.pair[q].tolist()
            for k in range(entries.first_entry[q], entries.first_entry[q + 1]):
                result[start + (left * n_right + right) * n_parent + entries.substate[k]] = values[k]
    return result


def smooth(dense: DenseRules, rules: float, lexicon: float) -> DenseRules:
    """Interpolate each substate's probabilities with the mean of its siblings'.

    Siblings of a substate are the other substates under the same top branch of the symbol's split tree; one without
    siblings stays as it is. ``rules`` and ``lexicon`` are the weights of the mean.
    """
    scores = np.empty_like(dense.prob)
    siblings = [_sibling_mean(tree, n) for tree, n in zip(dense.trees, dense.layout.substates, strict=True)]
    for block, prob in dense.blocks():
        weight = lexicon if block.left < 0 else rules
        mean = siblings[block.parent]
        smoothed = prob @ ((1.0 - weight) * np.eye(len(mean)) + weight * mean).T
        scores[block.start : block.stop] = smoothed.ravel()
    return dense.normalised(scores)


def _sibling_mean(tree: SplitTree, n: int) -> FloatArray:
    """(n, n) matrix whose row k averages the siblings of k."""
    mean = np.eye(n)
    for branch in [tree] if isinstance(tree, int) else tree:
        leaves = substates(branch)
        if len(leaves) > 1:
            mean[np.ix_(leaves, leaves)] = (1.0 - np.eye(len(leaves))) / (len(leaves) - 1)
    return mean


def expected_counts(forests: Sequence[Forest], dense: DenseRules) -> tuple[Likelihood, FloatArray]:
    """Log-likelihood, and how often each fine rule is used in the trees in expectation, (layout.size,)."""
    rules = dense.sparse()
    score, counts = expected_entries(forests, rules)
    return score, flat(rules, counts)
