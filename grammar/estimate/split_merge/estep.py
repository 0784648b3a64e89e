"""The E-step: likelihood of observed trees and expected rule counts, by inside-outside over substates.

Trees are arrays: a forest in which equal subtrees are one node, in batches of one base rule that come after the batches
of their children.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from truesource.grammar._kernels.rules import ForestNodes
from truesource.grammar.estimate.relative_frequency import RuleKey, RuleTable, rule_key
from truesource.grammar.estimate.split_merge.parameters import SparseRules
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.tree import Tree, no_garbage_collection

CHUNK_TOKENS = 100_000  #: tokens of the first forests, the work of one thread at a time
LARGEST = 3  #: largest size of a forest in CHUNK_TOKENS, which bounds the memory of the E-step
MOST_APART = 2_000_000  #: entries of the vectors of occurrences held at a time, about


def schedule(rule: IntArray, left: IntArray, right: IntArray, n_phrasal: int) -> tuple[IntArray, IntArray]:
    """Order the nodes of a graph so that children come first.

    Repeatedly takes the base rule with the largest share of its remaining nodes ready (all children done) and all its
    ready nodes at once: few, large batches, in which nodes with equal children are adjacent. Rules from ``n_phrasal``
    on are lexical: their nodes have no child, come first, by rule, and are in no batch.

    Args:
        rule: base rule of each node, (N,); node 0 represents an absent child.
        left: left or only child, 0 for none.
        right: right child, 0 for none.
        n_phrasal: number of phrasal rules.

    Returns:
        The nodes in order, (N,), node 0 first, and the start of each batch in it, (M + 1,), with N at the end.
    """
    from truesource.grammar.estimate.split_merge._kernels import release

    n = len(rule)
    phrasal = np.flatnonzero((rule >= 0) & (rule < n_phrasal))
    ends = np.cumsum(np.bincount(rule[phrasal], minlength=n_phrasal))  # ends of the nodes of each rule in `ready`
    begin = np.concatenate([[0], ends[:-1]])
    end, ready = begin.copy(), np.empty(len(phrasal), dtype=np.int64)
    children = np.column_stack([left, right]).ravel()
    by_child = np.argsort(children, kind="stable")
    by_child = by_child[np.count_nonzero(children == 0) :]
    parents = by_child // 2
    first_parent = np.searchsorted(children[by_child], np.arange(n + 1))
    waiting = (left != 0).astype(np.int64) + (right != 0)
    place, order = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    lexical = np.flatnonzero(rule >= n_phrasal)
    fresh, done = 1, 1 + len(lexical)
    order[1:done] = lexical[np.argsort(rule[lexical], kind="stable")]
    batches: list[int] = []
    while True:
        release(order, fresh, done, rule, first_parent, parents, waiting, place, ready, end)
        fresh = done
        share = (end - begin) / np.maximum(ends - begin, 1)
        best = int(np.argmax(share)) if n_phrasal else 0
        if not n_phrasal or share[best] == 0.0:
            return order, np.array([*batches, n], dtype=np.int64)
        batch = ready[begin[best] : end[best]]
        first, second = place[left[batch]], place[right[batch]]
        if first.max() > len(lexical) and 0 < second.max() <= len(lexical):
            first, second = second, first
        batches.append(done)
        done += len(batch)
        order[fresh:done] = batch[np.lexsort((second, first))]
        begin[best] = end[best]


@dataclass(frozen=True, eq=False)
class Forest:
    """Directed acyclic graph of some trees of a treebank.

    Equal subtrees (labels, words, shape) are one node: their inside vectors are equal, and outside weights of their
    occurrences are added, as expected counts are linear in them. Node 0 represents an absent child. All children of a
    node come before it: first the preterminals, by base rule, then batches of nodes of one base rule.
    """

    rule: Int32Array  #: (N,) base rule at each node; -1 for node 0
    left: Int32Array  #: (N,) left or only child, 0 for none
    right: Int32Array  #: (N,) right child, 0 for none
    batches: IntArray  #: (M + 1,) first node of each batch, and N
    roots: Int32Array  #: (T,) nodes that are roots, all different
    weights: FloatArray  #: (T,) occurrences of each tree in the treebank
    tokens: IntArray  #: (T,) words of each tree

    @property
    def n_trees(self) -> int:
        """Number of trees, repetitions counted."""
        return int(self.weights.sum())


class _Builder:
    """A builder that collects nodes bottom-up, equal ones once."""

    def __init__(self, number: Callable[[RuleKey], int]) -> None:
        self._number = number
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._roots: dict[int, list[int]] = {}
        self.n_tokens = 0

    def add(self, tree: Tree) -> Sequence[int]:
        """Add a tree; return its rules. If one is -1, return none and count nothing."""
        subtrees = list(tree.subtrees())
        rules = [self._number(rule_key(subtree)) for subtree in subtrees]
        if -1 in rules:
            return ()
        nodes = self._nodes
        done: list[int] = []  # nodes whose parent is still to come, leftmost on top
        n_tokens = 0
        for subtree, rule in zip(reversed(subtrees), reversed(rules), strict=True):
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
        return rules

    def graph(self) -> Graph:
        """Return the collected graph."""
        return Graph.of(self._nodes, self._roots)


class Graph(NamedTuple):
    """The nodes of some trees in the order of their first occurrence, children first."""

    keys: Int32Array  #: (N, 3) rule, left and right child of each node, as in `Forest`
    roots: IntArray  #: (T, 3) each tree's node, its occurrences, its number of words

    @classmethod
    def of(cls, nodes: Iterable[tuple[int, int, int]], roots: Mapping[int, Sequence[int]]) -> Graph:
        """Return the graph of these nodes, and of roots with their occurrences and numbers of words."""
        keys = np.array([(-1, 0, 0), *nodes], dtype=np.int32)
        entries = [(root, *entry) for root, entry in roots.items()]
        return cls(keys, np.array(entries, dtype=np.int64).reshape(-1, 3))

    def forest(self, number: IntArray, n_phrasal: int) -> Forest:
        """Return the nodes in batches; ``number`` are the base rules of the graph's rules, and -1."""
        rule, left, right = np.ascontiguousarray(self.keys.T.astype(np.int64))
        rule = number[rule]
        order, batches = schedule(rule, left, right, n_phrasal)
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order))
        return Forest(
            rule[order].astype(np.int32),
            place[left[order]],
            place[right[order]],
            batches,
            place[self.roots[:, 0]],
            self.roots[:, 1].astype(np.float64),
            self.roots[:, 2].copy(),
        )

    def renamed(self, number: IntArray) -> Graph:
        """Return the graph with rule ``number[i]`` in place of rule i; nodes that become equal are merged."""
        nodes: dict[tuple[int, int, int], int] = {}
        place = [0]
        rule, left, right = self.keys[1:].T
        for key in zip(number[rule].tolist(), left.tolist(), right.tolist(), strict=True):
            place.append(nodes.setdefault((key[0], place[key[1]], place[key[2]]), len(nodes) + 1))
        roots: dict[int, list[int]] = {}
        for root, times, n_tokens in self.roots.tolist():
            roots.setdefault(place[root], [0, n_tokens])[0] += times
        return Graph.of(nodes, roots)


class Subtrees:
    """The distinct subtrees of binarised trees, in graphs of `CHUNK_TOKENS` tokens or more, and their rules.

    Args:
        graphs: the subtrees.
        uses: uses of each rule in the trees; their order numbers the rules.
    """

    def __init__(self, graphs: Sequence[Graph], uses: Mapping[RuleKey, int]) -> None:
        self._graphs = graphs
        self._rules, self._uses = tuple(uses), tuple(uses.values())  # by rule number
        roots: Counter[str] = Counter()
        for graph in graphs:
            for rule, times in zip(graph.keys[graph.roots[:, 0], 0].tolist(), graph.roots[:, 1].tolist(), strict=True):
                roots[self._rules[rule][0]] += times
        self.table = RuleTable.from_counts(uses, roots)  #: base rules of the subtrees

    @classmethod
    def of(cls, trees: Iterable[Tree]) -> Subtrees:
        """Collect the subtrees in one walk over the trees.

        Raises:
            InputError: as `truesource.grammar.estimate.relative_frequency.RuleTable.from_trees`.
        """
        numbers: defaultdict[RuleKey, int] = defaultdict(itertools.count().__next__)
        uses: Counter[int] = Counter()
        with no_garbage_collection():
            graphs, _ = _graphs(trees, numbers.__getitem__, uses)
        return cls(graphs, {key: uses[i] for key, i in numbers.items()})

    def with_words(self, names: Mapping[str, str]) -> Subtrees:
        """Return the subtrees of the same trees with each word of ``names`` replaced."""
        uses: Counter[RuleKey] = Counter()
        numbers: defaultdict[RuleKey, int] = defaultdict(itertools.count().__next__)
        number = np.empty(len(self._rules), dtype=np.int64)
        for i, key in enumerate(self._rules):
            if len(key) == 3 and key[1] is None:
                key = (key[0], None, names.get(key[2], key[2]))
            number[i] = numbers[key]
            uses[key] += self._uses[i]
        return Subtrees([graph.renamed(number) for graph in self._graphs], uses)

    @property
    def digest(self) -> str:
        """SHA-256 that identifies these subtrees."""
        sha = hashlib.sha256(json.dumps(self._rules).encode())
        for graph in self._graphs:
            for array in graph:
                sha.update(array.tobytes())
        return sha.hexdigest()

    def forests(self, table: RuleTable) -> tuple[Forest, ...]:
        """Return the trees under the rules of a table, which has all rules that they use."""
        number = np.array([*(table.ids[key] for key in self._rules), -1], dtype=np.int64)
        return tuple(graph.forest(number, table.n_phrasal) for graph in self._graphs)


def _graphs(trees: Iterable[Tree], number: Callable[[RuleKey], int], uses: Counter[int]) -> tuple[list[Graph], int]:
    """Return graphs of `CHUNK_TOKENS` tokens or more, and the number of trees with a rule -1; ``uses`` counts rules."""
    graphs: list[Graph] = []
    builder, unknown, before = _Builder(number), 0, 0
    for tree in trees:
        rules = builder.add(tree)
        unknown += not rules
        uses.update(rules)
        # larger graphs share more subtrees; while many graphs remain, use a quarter of the tokens so far
        if builder.n_tokens >= min(max(CHUNK_TOKENS, before // 4), LARGEST * CHUNK_TOKENS):
            graphs.append(builder.graph())
            before += builder.n_tokens
            builder = _Builder(number)
    if builder.n_tokens:
        graphs.append(builder.graph())
    return graphs, unknown


def encode(trees: Sequence[Tree], table: RuleTable) -> tuple[tuple[Forest, ...], int]:
    """Return binarised trees as forests of about `CHUNK_TOKENS` tokens or more.

    Returns:
        The forests, and the number of trees excluded because they use a rule or word that is not in the table.
    """
    numbers = defaultdict(lambda: -1, table.ids)
    graphs, unknown = _graphs(trees, numbers.__getitem__, Counter())
    number = np.append(np.arange(len(table.rules)), -1)
    return tuple(graph.forest(number, table.n_phrasal) for graph in graphs), unknown


T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Inside:
    """Inside vectors of a forest's nodes, each scaled so that its largest entry is one."""

    nodes: ForestNodes
    vector: NDArray[Any]  #: all vectors, one after another
    scale: NDArray[Any]  #: (N,) factor taken out at the node; 0 if no substate derives its subtree
    log_probs: FloatArray  #: (T,) log probability of each tree, nats; -inf if impossible


@dataclass(frozen=True)
class Likelihood:
    """Log-likelihood of trees under a grammar with substates."""

    total: float  #: nats, over the possible trees
    tokens: int  #: words of the possible trees
    impossible: int  #: trees of probability zero, excluded from both

    @property
    def per_token(self) -> float | None:
        """Nats per word of the possible trees; None if there are none."""
        return self.total / self.tokens if self.tokens else None


def inside(forest: Forest, rules: SparseRules) -> Inside:
    """Return the inside vectors of every node, children first."""
    from truesource.grammar.estimate.split_merge import _kernels as kernels

    lengths, offset = _layout(forest.rule, rules)
    vector = np.zeros(int(lengths.sum()), dtype=rules.prob.dtype)
    scale, log_scale = np.empty(len(offset), dtype=rules.prob.dtype), np.empty(len(offset))
    nodes = ForestNodes(forest.rule, forest.left, forest.right, forest.batches, offset)
    kernels.inside(nodes, rules.sizes, rules.entries, vector, scale, log_scale)
    return Inside(nodes, vector, scale, log_scale[forest.roots])


def _layout(rule: Int32Array, rules: SparseRules) -> tuple[IntArray, IntArray]:
    """Return the length of the vector of each node, and its offset among all of them."""
    lengths = rules.sizes[rule, 0]
    lengths[0] = 1
    return lengths, np.cumsum(lengths) - lengths


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Some trees of a forest, with a separate node for each occurrence."""

    nodes: ForestNodes
    vector: NDArray[Any]  #: all inside vectors, one after another, each over its largest entry
    out: NDArray[Any]  #: all outside vectors, scaled so that inside times outside is the tree's weight at each node
    weight: FloatArray  #: (N,) weight of the node's tree


def occurrences(forest: Forest, rules: SparseRules) -> Iterator[Occurrences]:
    """Yield all possible trees of a forest, some at a time."""
    from truesource.grammar.estimate.split_merge import _kernels as kernels

    up = inside(forest, rules)
    possible = np.flatnonzero(np.isfinite(up.log_probs))
    part = np.cumsum(forest.tokens[possible]) * 2 * int(rules.sizes.max()) // MOST_APART
    for trees in np.split(possible, np.flatnonzero(np.diff(part)) + 1):
        node, left, right, weight, roots = _apart(forest, trees)
        lengths, offset = _layout(forest.rule[node], rules)
        at = np.repeat(up.nodes.offset[node] - offset, lengths) + np.arange(lengths.sum())
        vector, scale = up.vector[at], up.scale[node]
        out = np.zeros_like(vector)
        out[offset[roots]] = weight[roots]
        batches = np.unique(np.searchsorted(node, forest.batches))
        nodes = ForestNodes(forest.rule[node], left, right, batches, offset)
        kernels.outside(nodes, rules.sizes, rules.entries, vector, scale, out, False, np.zeros(len(rules.prob)))
        yield Occurrences(nodes, vector, out, weight)


def _apart(forest: Forest, trees: IntArray) -> tuple[Int32Array, Int32Array, Int32Array, FloatArray, IntArray]:
    """Return node, left and right child and weight of each occurrence, by node; and the occurrences that are roots."""
    node, weight = forest.roots[trees], forest.weights[trees]
    nodes, weights = [np.zeros(1, dtype=node.dtype)], [np.zeros(1)]  # number 0 is an absent child
    children, n = [np.zeros((1, 2), dtype=np.int64)], 1
    while len(node):  # a level of all trees
        n += len(node)
        below = np.stack([forest.left[node], forest.right[node]], axis=1)
        there = below != 0
        nodes.append(node)
        weights.append(weight)
        children.append(np.where(there, n - 1 + np.cumsum(there).reshape(there.shape), 0))
        node, weight = below[there], np.repeat(weight, there.sum(axis=1))
    node = np.concatenate(nodes)
    order = np.argsort(node, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(n)
    left, right = np.ascontiguousarray(place[np.concatenate(children)[order]].T, dtype=np.int32)
    return node[order], left, right, np.concatenate(weights)[order], place[1 : 1 + len(trees)]


def likelihood(forests: Sequence[Forest], rules: SparseRules, *, unknown: int = 0) -> Likelihood:
    """Return the log-likelihood of the trees, substates summed out, and of ``unknown`` trees of probability 0."""
    rules = rules.awake()
    return _sum(list(zip(forests, each(_log_probs, forests, rules), strict=True)), unknown)


def _sum(parts: Sequence[tuple[Forest, FloatArray]], unknown: int) -> Likelihood:
    total, tokens, impossible = 0.0, 0, unknown
    for forest, log_probs in parts:
        possible = np.isfinite(log_probs)
        total += float(np.sum(forest.weights[possible] * log_probs[possible]))
        tokens += int(np.sum(forest.weights[possible] * forest.tokens[possible]))
        impossible += int(forest.weights[~possible].sum())
    return Likelihood(total, tokens, impossible)


def expected_entries(
    forests: Sequence[Forest], rules: SparseRules, *, asleep_too: bool = True
) -> tuple[Likelihood, FloatArray]:
    """Return the log-likelihood, and the expected number of uses of each entry of ``rules`` in the trees, (E,).

    The counts are ``prob * d log-likelihood / d prob``, the derivative by the log probability. Trees of probability
    zero add nothing; the first result counts them. Dormant phrasal entries count 0 unless ``asleep_too``.
    """
    gradient = np.zeros(len(rules.prob))
    parts: list[tuple[Forest, FloatArray]] = []
    derivative = partial(_derivative, asleep_too=asleep_too)
    for forest, (log_probs, part) in zip(forests, each(derivative, forests, rules), strict=True):
        gradient += part  # in the order of the forests for any number of threads
        parts.append((forest, log_probs))
    return _sum(parts, 0), gradient * rules.prob


def _derivative(forest: Forest, rules: SparseRules, asleep_too: bool) -> tuple[FloatArray, FloatArray]:
    """Return the log probability of each tree, and the derivative of their sum by each rule probability.

    Computes in float64 if float32 is out of its range.
    """
    from truesource.grammar.estimate.split_merge import _kernels as kernels

    up = inside(forest, rules)
    out, gradient = np.zeros_like(up.vector), np.zeros(len(rules.prob))
    # A root has one substate, whose scaled inside value is one, so its outside weight is its count.
    out[up.nodes.offset[forest.roots]] = np.where(np.isfinite(up.log_probs), forest.weights, 0.0)
    kernels.outside(up.nodes, rules.sizes, rules.entries, up.vector, up.scale, out, asleep_too, gradient)
    in_range = bool(np.isfinite(up.log_probs).all() and np.isfinite(gradient).all())
    if not in_range and rules.prob.dtype != np.float64:
        return _derivative(forest, rules.astype(np.float64), asleep_too)
    return up.log_probs, gradient


def _log_probs(forest: Forest, rules: SparseRules) -> FloatArray:
    log_probs = inside(forest, rules).log_probs
    if not np.isfinite(log_probs).all() and rules.prob.dtype != np.float64:
        return inside(forest, rules.astype(np.float64)).log_probs
    return log_probs


def each(work: Callable[[Forest, SparseRules], T], forests: Sequence[Forest], rules: SparseRules) -> Iterator[T]:
    """Yield the results of ``work`` for each forest, in order; as many at once as there are threads."""
    from joblib import Parallel, delayed

    from truesource.grammar.support.threads import threads

    n = min(threads(), len(forests))
    if n <= 1:
        yield from (work(forest, rules) for forest in forests)
        return
    parallel = Parallel(n_jobs=n, prefer="threads", return_as="generator", pre_dispatch=n)
    yield from parallel(delayed(work)(forest, rules) for forest in forests)
