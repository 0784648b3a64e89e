"""The k best trees of a sentence, by the product of posterior rule probabilities or by their best derivation.

The k best distinct treebank trees are found lazily, by Huang & Chiang (2005), "Better k-best parsing", algorithm 3,
with two additions.

*Distinct trees.* A treebank tree does not show symbols of one label, or nodes of binarisation. Each vertex
(a symbol over a span) therefore lists the distinct *yields* of its derivations, best first: its treebank tree, or the
trees below an ``@`` node. No more than k yields of a vertex are ever needed: if the best derivation of a
tree has the yield of rank r below some edge, the r - 1 better yields in its place make r - 1 other trees, none of them
worse. So the work is bounded by k squared a vertex and edge, however many derivations a tree has.

*Unary chains.* No symbol occurs twice on one unary chain: cycles would give infinitely many trees. A
vertex below a unary step records the symbols above it to which its chain could return, and its candidates are
bounded by the best chain that avoids them, as in Yen (1971), "Finding the k shortest loopless paths in a network".
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from truesource.grammar.inference.exact import Exact, ViterbiCharts, viterbi_charts
from truesource.grammar.inference.nonnegative_matrices import reachable
from truesource.grammar.inference.posterior import Posterior, RuleCharts, coarse_rules, max_rule_charts, tables
from truesource.grammar.inference.rules import child_rules, unary_matrix
from truesource.grammar.parsing import _kernels as kernels
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.binarise import INTERMEDIATE

if TYPE_CHECKING:
    from truesource.grammar._kernels.rules import ChildRules
    from truesource.grammar.pcfg import PCFG


WINDOW = 12.0  #: nats below the best tree of the first search for the k best
WIDEST = 100.0  #: window in nats that includes all trees
SLACK = 1e-9  #: nats by which scores of one tree may differ by rounding
ROUNDING = 1e-12  #: nats by which a sum may differ in another order of addition

Place = tuple[int, int, int]  #: first token, token after the last, symbol
_LABELS_BELOW: WeakKeyDictionary[Exact, list[frozenset[int]]] = WeakKeyDictionary()
_DERIVATION_TABLES: WeakKeyDictionary[Exact, tuple[ChildRules, ChildRules, list[frozenset[int]]]] = WeakKeyDictionary()


class EdgeList(NamedTuple):
    """The rewrites of one symbol over one span, best first."""

    split: list[int]  #: -1 without a right child
    left: list[int]  #: -1 above a word
    right: list[int]  #: -1 of unary rules and above a word
    weight: list[float]  #: factor of the edge itself, nats
    score: list[float]  #: score of the best tree with the edge on top, nats; cyclic chains included


class Rewrites(Protocol):
    """Weighted trees over one sentence, as searched by `LazyForest`."""

    words: tuple[str, ...]  #: (n,)
    labels: tuple[str, ...]  #: labels of the symbols; labels that start with ``@`` are hidden
    start: int
    floor: float  #: nats; all trees of this score or more are included

    def best(self, place: Place) -> float:
        """Return the score of the best tree, nats."""

    def edges(self, place: Place, least: float) -> EdgeList:
        """Return the edges whose score is at least ``least``."""

    def below(self, symbol: int) -> frozenset[int]:
        """Return the symbols that unary chains from a symbol lead to, itself included."""


class RankedEdge(NamedTuple):
    """An edge over yields of certain ranks; a heap returns the best first, ties in the order of the edges."""

    cost: float  #: negative score; until both yields are known, the cost of the next better candidate
    edge: int
    left_rank: int
    right_rank: int
    exact: bool  #: whether the cost is its own


class _Vertex:
    """One place below certain symbols, and its yields so far."""

    __slots__ = ("above", "bound", "edges", "heap", "most", "next", "over", "place", "seen", "yields")

    def __init__(self, place: Place, above: frozenset[int], edges: EdgeList, most: float, bound: float) -> None:
        self.place, self.above, self.edges = place, above, edges
        self.most = most  #: score of the best tree of the place
        self.bound = bound  #: upper bound on the best score without the symbols above
        self.next = 0  #: first edge not yet in the heap
        self.heap: list[RankedEdge] = []
        self.yields: list[tuple[float, tuple[int, ...]]] = []  #: score and yield, best first
        self.seen: set[tuple[int, ...]] = set()
        self.over = False  #: whether all yields were found


class TreeTable:
    """Trees over one sentence, each stored once under a number above the numbers of its children."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self._numbers: dict[tuple[str, tuple[int, ...]], int] = {}
        self._parts: list[tuple[str, tuple[int, ...]]] = []
        self._trees: dict[int, Tree] = {}

    def number(self, label: str, children: tuple[int, ...]) -> int:
        """Return the number of the tree with these children; word i is child -1 - i."""
        key = (label, children)
        if key not in self._numbers:
            self._numbers[key] = len(self._parts)
            self._parts.append(key)
        return self._numbers[key]

    def tree(self, number: int) -> Tree:
        """Return the tree of a number."""
        required: set[int] = set()
        stack = [number]
        while stack:
            at = stack.pop()
            if at >= 0 and at not in required and at not in self._trees:
                required.add(at)
                stack += self._parts[at][1]
        for at in sorted(required):
            label, children = self._parts[at]
            self._trees[at] = Tree(label, tuple(self.words[-1 - c] if c < 0 else self._trees[c] for c in children))
        return self._trees[number]


class LazyForest:
    """Trees of one sentence at most ``window`` nats worse than the best, best first."""

    def __init__(self, rewrites: Rewrites, window: float) -> None:
        self._rewrites, self._window = rewrites, window
        self._table = TreeTable(rewrites.words)
        self._vertices: dict[tuple[Place, frozenset[int]], _Vertex] = {}
        self._edges: dict[Place, EdgeList] = {}
        #: score of the best edge that is not unary, and unary rules: child and weight
        self._steps: dict[Place, tuple[float, list[tuple[int, float]]]] = {}
        self._root: Place = (0, len(rewrites.words), rewrites.start)

    def trees(self, k: int) -> list[tuple[Tree, float]]:
        """Return the k best distinct treebank trees and their scores; fewer if the window has no more."""
        root = self._vertex(self._root, frozenset())
        self._search(root, k)
        return [(self._table.tree(number), score) for score, (number,) in root.yields[:k]]

    def _vertex(self, place: Place, above: frozenset[int]) -> _Vertex:
        key = place, above
        if key not in self._vertices:
            most = self._rewrites.best(place)
            bound = self._bound(place, above) if above else most
            self._vertices[key] = _Vertex(place, above, self._listed(place), most, bound)
        return self._vertices[key]

    def _listed(self, place: Place) -> EdgeList:
        if place not in self._edges:
            least = self._rewrites.best(place) - self._window - SLACK
            self._edges[place] = self._rewrites.edges(place, least)
        return self._edges[place]

    def _bound(self, place: Place, above: frozenset[int]) -> float:
        """Return a bound on the best tree whose chain avoids the symbols above: the best path to a word or a pair.

        Without it, the search would follow every chain that has no other exit; their number may be factorial.
        """
        i, j, symbol = place
        heap, done, best = [(0.0, symbol)], set[int](), -math.inf
        while heap and -heap[0][0] > best:
            cost, at = heapq.heappop(heap)
            if at in done:
                continue
            done.add(at)
            if (i, j, at) not in self._steps:
                edges = self._listed((i, j, at))
                columns = list(zip(edges.left, edges.right, edges.weight, edges.score, strict=True))
                bare = max((score for left, right, _, score in columns if left < 0 or right >= 0), default=-math.inf)
                chain = [(left, weight) for left, right, weight, _ in columns if left >= 0 and right < 0]
                self._steps[i, j, at] = bare, chain
            bare, chain = self._steps[i, j, at]
            best = max(best, bare - cost)
            for child, weight in chain:
                if child not in above and child not in done:
                    heapq.heappush(heap, (cost - weight, child))
        return best + ROUNDING

    def _children(self, vertex: _Vertex, edge: int) -> tuple[_Vertex, ...] | None:
        """Return the vertices below an edge; None if its chain would be cyclic."""
        i, j, symbol = vertex.place
        edges = vertex.edges
        left = edges.left[edge]
        if left < 0:
            return ()
        if edges.right[edge] < 0:
            above = vertex.above | {symbol}
            return None if left in above else (self._vertex((i, j, left), above & self._rewrites.below(left)),)
        split, none = edges.split[edge], frozenset[int]()
        return self._vertex((i, split, left), none), self._vertex((split, j, edges.right[edge]), none)

    def _search(self, root: _Vertex, k: int) -> None:
        """Find the first k yields of the root, and as many below as required."""
        stack = [(root, k)]
        while stack:
            vertex, target = stack[-1]
            if len(vertex.yields) >= target or vertex.over:
                stack.pop()
                continue
            edges, heap = vertex.edges, vertex.heap
            while vertex.next < len(edges.score) and (not heap or -edges.score[vertex.next] <= heap[0].cost):
                heapq.heappush(heap, RankedEdge(-edges.score[vertex.next], vertex.next, 0, 0, False))
                vertex.next += 1
            least = vertex.most - self._window - SLACK
            if not heap or heap[0].cost == math.inf or -heap[0].cost < least:
                vertex.over = True
                continue
            top = heap[0]
            children = self._children(vertex, top.edge)
            if children is None:
                heapq.heappop(heap)
                continue
            if len(children) == 1 and -(edges.weight[top.edge] + children[0].bound) > top.cost:
                heapq.heapreplace(heap, top._replace(cost=-(edges.weight[top.edge] + children[0].bound)))
                continue
            ranks = (top.left_rank, top.right_rank)[: len(children)]
            missing = [
                (child, rank + 1) for child, rank in zip(children, ranks, strict=True) if len(child.yields) <= rank
            ]
            if any(child.over for child, _ in missing):
                heapq.heappop(heap)
            elif missing:
                stack.append(missing[0])
            elif top.exact:
                heapq.heappop(heap)
                self._take(vertex, top, children)
            else:
                score = sum(child.yields[rank][0] for child, rank in zip(children, ranks, strict=True))
                heapq.heapreplace(heap, top._replace(cost=-(score + edges.weight[top.edge]), exact=True))

    def _take(self, vertex: _Vertex, top: RankedEdge, children: tuple[_Vertex, ...]) -> None:
        """Add the yield of a candidate, unless it is a duplicate, and create the candidates after it."""
        if children:
            if len(children) == 2:
                heapq.heappush(vertex.heap, top._replace(right_rank=top.right_rank + 1, exact=False))
            if top.right_rank == 0:
                heapq.heappush(vertex.heap, top._replace(left_rank=top.left_rank + 1, exact=False))
        inside: tuple[int, ...] = ()
        for child, rank in zip(children, (top.left_rank, top.right_rank), strict=False):
            inside += child.yields[rank][1]
        i, _, symbol = vertex.place
        label = self._rewrites.labels[symbol]
        tree_numbers: tuple[int, ...]
        if not children:
            tree_numbers = (self._table.number(label, (-1 - i,)),)
        elif label.startswith(INTERMEDIATE):
            tree_numbers = inside
        else:
            tree_numbers = (self._table.number(label, inside),)
        if tree_numbers not in vertex.seen:
            vertex.seen.add(tree_numbers)
            vertex.yields.append((-top.cost, tree_numbers))


def k_best(rewrites: Callable[[float], Rewrites], k: int) -> list[tuple[Tree, float]]:
    """Return the k best distinct treebank trees of one sentence, best first, and their scores in nats.

    Args:
        rewrites: returns the weighted trees: the best, and all trees of the given score or more.
        k: number of trees; there may be fewer.

    Raises:
        InputError: k is below 1, or the start symbol is a symbol of binarisation.
    """
    if k < 1:
        raise InputError(f"the number of trees must be 1 or more, not {k}")
    forest = rewrites(math.inf)
    label = forest.labels[forest.start]
    if label.startswith(INTERMEDIATE):
        raise InputError(f"a whole tree cannot have the label {label!r}: @ marks binarisation; rename it")
    best = forest.best((0, len(forest.words), forest.start))
    window = WINDOW if k > 1 else 0.0
    while True:
        result = LazyForest(forest, window).trees(k)
        floor = max(best - window, forest.floor)
        if floor == -math.inf or (len(result) == k and result[-1][1] >= floor):
            return result
        wider = 2.0 * window + 1.0 if window < WIDEST else math.inf
        # if there are k, the k best are no worse than these
        window = best - result[-1][1] + SLACK if len(result) == k else wider
        if forest.floor > best - window:
            forest = rewrites(best - window)


def k_best_max_rule(posterior: Posterior, k: int) -> list[tuple[Tree, float]]:
    """Return the k treebank trees with the greatest product of posterior rule probabilities, best first.

    The product is as in `truesource.grammar.inference.posterior.max_rule_tree`, whose tree comes first. It is a product
    over binarised trees: of those with the same treebank tree the best counts. No label occurs twice on one unary chain
    of a binarised tree: as no factor exceeds 1, cycles make no tree better, and would give infinitely many trees.

    Returns:
        Distinct trees with treebank labels, not binarised, and nats, at most 0; fewer than k only if there are no
        more. Trees of equal score are always in the same order.

    Raises:
        InputError: k is below 1, or the label of the start symbol begins with ``@``.
    """
    return k_best(lambda least: _CoarseRewrites(posterior, max_rule_charts(posterior, least)), k)


def k_best_viterbi(pcfg: PCFG, sentence: Sequence[str], k: int) -> list[tuple[Tree, float]]:
    """Return the k treebank trees with the most probable derivations, most probable first.

    A treebank tree has many derivations: its labels are split into symbols, and binarisation may add more. The k most
    probable derivations of a split grammar would mostly be one tree, so the trees are distinct, and each has the log
    probability of its best derivation; `samples.TreeScores.log_p` is the sum over all of them. No symbol occurs twice
    on one unary chain of a derivation, since cycles make none more probable.

    Returns:
        Trees with treebank labels, not binarised, and nats; fewer than k only if there are no more. Trees of equal
        score are always in the same order.

    Raises:
        InputError: k is below 1, the label of the start symbol begins with ``@``, the sentence has probability 0,
            or, as `TooLongError`, its chart does not fit into memory.
    """
    charts = viterbi_charts(pcfg.exact, pcfg.exact.best_chains, sentence)
    rewrites = _DerivationRewrites(pcfg, sentence, charts)
    return k_best(lambda _: rewrites, k)


def _sorted(split: Int32Array, left: Int32Array, right: Int32Array, weight: FloatArray, score: FloatArray) -> EdgeList:
    order = np.argsort(-score, kind="stable")
    return EdgeList(*(column[order].tolist() for column in (split, left, right, weight, score)))


def _reached(links: FloatArray) -> list[frozenset[int]]:
    """Return numbers that follow from each along positive entries, itself included."""
    return [frozenset(np.flatnonzero(row).tolist()) for row in reachable(links)]


class _CoarseRewrites:
    """Coarse rules over a sentence, weighted as in max-rule trees."""

    def __init__(self, posterior: Posterior, charts: RuleCharts) -> None:
        exact = posterior.pcfg.exact
        self.posterior, self.charts, self.words = posterior, charts, posterior.sentence
        self.shared, self.coarse, self.pairs = tables(exact), coarse_rules(exact), exact.pairs
        self.labels, self.floor = self.shared.labels, charts.floor
        self.start = int(self.shared.state_label[posterior.pcfg.start])
        if exact not in _LABELS_BELOW:
            links = np.zeros((len(self.labels),) * 2)
            links[self.coarse.chains[0], self.coarse.chains[1]] = 1.0
            _LABELS_BELOW[exact] = _reached(links)
        self._below = _LABELS_BELOW[exact]

    def best(self, place: Place) -> float:
        i, j, label = place
        return float(self.charts.best[j * (j - 1) // 2 + i, label])

    def below(self, symbol: int) -> frozenset[int]:
        return self._below[symbol]

    def edges(self, place: Place, least: float) -> EdgeList:
        best, below = self.charts.best, self.charts.below
        chart, closed = self.posterior.chart, self.posterior.closed
        return _sorted(
            *kernels.coarse_edges(
                place, least, best, below, chart, closed, self.shared.state_label, self.pairs, self.coarse
            )
        )


class _DerivationRewrites:
    """The rules of a grammar over a sentence, weighted by their log probabilities."""

    def __init__(self, pcfg: PCFG, sentence: Sequence[str], charts: ViterbiCharts) -> None:
        exact, n_states = pcfg.exact, len(pcfg.symbols)
        self.charts, self.words, self.labels, self.start = charts, tuple(sentence), pcfg.labels, pcfg.start
        self.floor = -math.inf
        if exact not in _DERIVATION_TABLES:
            binary, unary = (
                child_rules(rules, logp, n_states)
                for rules, logp in ((pcfg.binary, pcfg.binary_logp), (pcfg.unary, pcfg.unary_logp))
            )
            _DERIVATION_TABLES[exact] = binary, unary, _reached(unary_matrix(pcfg))
        self.binary, self.unary, self._below = _DERIVATION_TABLES[exact]
        self.lexicon = exact.lexicon._replace(prob=pcfg.lexical_logp)

    def best(self, place: Place) -> float:
        i, j, symbol = place
        return float(self.charts.best[j * (j - 1) // 2 + i, symbol])

    def below(self, symbol: int) -> frozenset[int]:
        return self._below[symbol]

    def edges(self, place: Place, least: float) -> EdgeList:
        return _sorted(
            *kernels.derivation_edges(
                place, least, self.charts.best, self.charts.words, self.binary, self.unary, self.lexicon
            )
        )
