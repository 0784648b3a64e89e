"""Trees as arrays: a forest in which equal subtrees are one node, in batches of one base rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truesource.grammar.estimate.rules import RuleTable, rule_key
from truesource.grammar.estimate.split_merge.schedule import schedule
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.tree import Tree

CHUNK_TOKENS = 100_000  #: tokens per forest; bounds the memory of the E-step, and what one thread takes at a time


@dataclass(frozen=True, eq=False)
class Forest:
    """Some trees of a treebank as one directed acyclic graph.

    Equal subtrees (labels, words, shape) are one node: their inside vectors are the same, and the
    outside weights of their occurrences may be added up, as expected counts are linear in them. Node 0
    is no tree node but stands for an absent child. All children of a node come before it: first the
    preterminals, by base rule, then batches of nodes of one base rule.
    """

    rule: Int32Array  #: (N,) base rule at each node; -1 for node 0
    left: Int32Array  #: (N,) left or only child, 0 where there is none
    right: Int32Array  #: (N,) right child, 0 where there is none
    batches: IntArray  #: (M + 1,) first node of each batch, and N
    roots: Int32Array  #: (T,) nodes that are whole trees, all different
    weights: FloatArray  #: (T,) how often each tree stands in the treebank
    tokens: IntArray  #: (T,) words of each tree

    @property
    def n_trees(self) -> int:
        """Number of trees, repetitions counted."""
        return int(self.weights.sum())


class _Builder:
    """Collects nodes bottom-up, equal ones once."""

    def __init__(self, table: RuleTable) -> None:
        self._rules = table.ids
        self._n_phrasal = int(np.count_nonzero(table.rules[:, 3] < 0))
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._roots: dict[int, list[int]] = {}
        self.n_tokens = 0

    def add(self, tree: Tree) -> bool:
        """Take a tree in; False, and nothing is counted, when it uses a rule the table does not have."""
        nodes = self._nodes
        done: list[int] = []  # nodes whose parent is still to come, leftmost on top
        n_tokens = 0
        for subtree in reversed(list(tree.subtrees())):
            rule = self._rules.get(rule_key(subtree))
            if rule is None:
                return False
            if subtree.is_preterminal:
                left, right = 0, 0
                n_tokens += 1
            else:
                left = done.pop()
                right = done.pop() if len(subtree.children) == 2 else 0
            key = (rule, left, right)
            node = nodes.get(key)
            if node is None:
                node = nodes[key] = len(nodes) + 1
            done.append(node)
        self._roots.setdefault(done[0], [0, n_tokens])[0] += 1
        self.n_tokens += n_tokens
        return True

    def forest(self) -> Forest:
        """The nodes in batches."""
        keys = np.array([(-1, 0, 0), *self._nodes], dtype=np.int64)
        rule, left, right = np.ascontiguousarray(keys.T)
        order, batches = schedule(rule, left, right, self._n_phrasal)
        place = np.empty(len(keys), dtype=np.int64)
        place[order] = np.arange(len(keys))
        rule, left, right = keys[order].T
        found = [(place[root], *entry) for root, entry in self._roots.items()]
        roots = np.array(found, dtype=np.int64).reshape(-1, 3)
        return Forest(
            rule.astype(np.int32),
            place[left].astype(np.int32),
            place[right].astype(np.int32),
            batches,
            roots[:, 0].astype(np.int32),
            roots[:, 1].astype(np.float64),
            roots[:, 2].copy(),
        )


def encode(trees: Sequence[Tree], table: RuleTable) -> tuple[tuple[Forest, ...], int]:
    """Binarised trees as forests of about 100,000 tokens each.

    Returns:
        The forests, and the number of trees left out because they use a rule or word that the table
        does not have.
    """
    forests: list[Forest] = []
    builder, unknown = _Builder(table), 0
    for tree in trees:
        unknown += not builder.add(tree)
        if builder.n_tokens >= CHUNK_TOKENS:
            forests.append(builder.forest())
            builder = _Builder(table)
    if builder.n_tokens:
        forests.append(builder.forest())
    return tuple(forests), unknown
