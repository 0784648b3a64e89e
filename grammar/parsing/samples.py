"""Trees of a sentence drawn from its posterior, and the exact log probabilities of treebank trees.

The probability of a treebank tree is the sum over all its derivations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from truesource.grammar.inference.nonnegative_matrices import closure
from truesource.grammar.inference.rules import unary_matrix
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree, fold
from truesource.grammar.treebank.binarise import INTERMEDIATE, surface
from truesource.grammar.unknown import put_words

if TYPE_CHECKING:
    from truesource.grammar.inference.exact import Exact
    from truesource.grammar.inference.posterior import Posterior
    from truesource.grammar.pcfg import PCFG


Weights = dict[str, FloatArray]  #: weights of the symbols of each label
_TABLES: WeakKeyDictionary[Exact, ScoreTables] = WeakKeyDictionary()


class LabelRules(NamedTuple):
    """The rules between symbols of certain labels, symbols numbered within their label."""

    size: int  #: symbols of the parent's label
    parent: IntArray  #: (rules,)
    children: IntArray  #: (children, rules)
    prob: FloatArray  #: (rules,)

    def apply(self, *below: FloatArray) -> FloatArray:
        """Return weights of the symbols of the parent's label, (size,), from weights of the children's symbols."""
        weights = self.prob
        for child, column in zip(below, self.children, strict=True):
            weights = weights * child[column]
        return np.asarray(np.bincount(self.parent, weights, self.size), dtype=np.float64)


@dataclass(frozen=True)
class ScoreTables:
    """The rules of a grammar by label. ``@`` labels come from binarisation; trees do not show them."""

    number: IntArray  #: (S,) number of each symbol within its label
    states: dict[str, IntArray]  #: symbols of each label
    binary: dict[tuple[str, ...], dict[str, LabelRules]]  #: by the labels of both children, then of the parent
    unary: dict[tuple[str, ...], dict[str, LabelRules]]  #: by the label of the child, then of the parent
    inner: dict[str, frozenset[str]]  #: the ``@`` labels possible between a node of this label and its children
    hidden: IntArray  #: symbols with ``@`` labels
    chains: FloatArray | None  #: unary closure of these symbols; None without unary rules between them


def score_tables(exact: Exact) -> ScoreTables:
    """Return the tables of a grammar, cached as long as its `Exact`.

    Raises:
        InputError: unary rules between symbols with ``@`` labels do not converge.
    """
    if exact not in _TABLES:
        _TABLES[exact] = _make_tables(exact)
    return _TABLES[exact]


def _make_tables(exact: Exact) -> ScoreTables:
    pcfg = exact.pcfg
    names = tuple(dict.fromkeys(pcfg.labels))
    label = np.array([names.index(each) for each in pcfg.labels])
    states = {name: np.flatnonzero(label == i) for i, name in enumerate(names)}
    number = np.zeros(len(label), dtype=np.int64)
    for each in states.values():
        number[each] = np.arange(len(each))
    binary = _by_label(pcfg.binary, pcfg.binary_logp, label, number, names)
    unary = _by_label(pcfg.unary, pcfg.unary_logp, label, number, names)
    import networkx as nx

    links: nx.DiGraph[str] = nx.DiGraph()
    links.add_nodes_from(names)
    for children, parents in (*binary.items(), *unary.items()):
        links.add_edges_from((up, down) for up in parents for down in children if down.startswith(INTERMEDIATE))
    # links lead to @ labels only, so all reachable labels are @ labels
    inner = {
        name: frozenset(nx.descendants(links, name) | ({name} if name.startswith(INTERMEDIATE) else set()))
        for name in names
    }
    hidden = np.flatnonzero([each.startswith(INTERMEDIATE) for each in pcfg.labels])
    steps = np.where(exact.mass > 0.0, unary_matrix(pcfg), 0.0)[np.ix_(hidden, hidden)]
    chains = closure(steps, "unary closure") if steps.any() else None
    return ScoreTables(number, states, binary, unary, inner, hidden, chains)


def _by_label(
    rules: Int32Array, logp: FloatArray, label: IntArray, number: IntArray, names: tuple[str, ...]
) -> dict[tuple[str, ...], dict[str, LabelRules]]:
    """Return rules of one kind by the labels of the children, and of the parent."""
    table: dict[tuple[str, ...], dict[str, LabelRules]] = {}
    sizes = np.bincount(label, minlength=len(names))
    kinds, which = np.unique(label[rules], axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(kinds)))[:-1]
    for kind, indices in zip(kinds.tolist(), np.split(order, ends), strict=bool(len(kinds))):
        columns = np.ascontiguousarray(number[rules[indices]].T)
        of_kind = LabelRules(int(sizes[kind[0]]), columns[0], columns[1:], np.exp(logp[indices]))
        table.setdefault(tuple(names[child] for child in kind[1:]), {})[names[kind[0]]] = of_kind
    return table


class _TreeWeights(NamedTuple):
    """One part of a tree."""

    label: str
    weights: FloatArray  #: of the symbols of the label, the greatest 1; all zero if the part is impossible
    log_scale: float  #: log of their common factor, nats


class TreeScores:
    """Exact probabilities of trees of one grammar; parts shared by trees are computed once.

    Args:
        pcfg: the grammar.

    Raises:
        InputError: unary rules between symbols of binarisation do not converge.
    """

    def __init__(self, pcfg: PCFG) -> None:
        self.pcfg = pcfg
        self._tables = score_tables(pcfg.exact)
        self._numbers: dict[tuple[str, str | tuple[int, ...]], int] = {}
        self._parts: list[_TreeWeights] = []

    def log_p(self, tree: Tree) -> float:
        """Return ln P(tree, sentence), nats; -inf if the grammar cannot derive the tree.

        The sum over all derivations of this tree: over the symbols of its labels, over binarisations, and over unary
        chains through ``@`` nodes. A node over m children takes m^3 steps at most. The probabilities of all trees over
        a sentence sum to the probability of the sentence.

        Args:
            tree: treebank labels, not binarised, over words as the grammar reads them.

        Raises:
            InputError: a word is next to other children, a node has no children, or the tree is binarised.
        """
        top = self._parts[fold(tree, self._number)]
        start = self.pcfg.start
        if top.label != self.pcfg.labels[start]:
            return -math.inf
        weight = float(top.weights[self._tables.number[start]])
        return top.log_scale + math.log(weight) if weight > 0.0 else -math.inf

    def _number(self, node: Tree, children: list[int]) -> int:
        """Return the number of a part of a tree, after computing its weights."""
        first = node.children[0] if node.children else None
        if len(children) != len(node.children) and not (isinstance(first, str) and len(node.children) == 1):
            raise InputError(f"a word is next to other children of {node.label!r}; give each word a preterminal")
        if first is None:
            raise InputError(f"a node {node.label!r} has no children; remove it")
        if children and node.label.startswith(INTERMEDIATE):
            raise InputError(f"the tree has a node {node.label!r} of binarisation; unbinarise it first")
        key = (node.label, first if isinstance(first, str) else tuple(children))
        if key not in self._numbers:
            if isinstance(first, str):
                weights = _scaled(node.label, self._word(node.label, first), 0.0)
            else:
                weights = self._node(node.label, [self._parts[child] for child in children])
            self._numbers[key] = len(self._parts)
            self._parts.append(weights)
        return self._numbers[key]

    def _word(self, label: str, word: str) -> FloatArray:
        """Return P(word | symbol) for the symbols of a label."""
        states = self._tables.states.get(label, np.zeros(0, dtype=np.int64))
        weights = np.zeros(len(self.pcfg.symbols))
        if word in self.pcfg.word_ids:
            start, parent, prob = self.pcfg.exact.lexicon
            at = self.pcfg.word_ids[word]
            weights[parent[start[at] : start[at + 1]]] = prob[start[at] : start[at + 1]]
        return weights[states]

    def _node(self, label: str, children: list[_TreeWeights]) -> _TreeWeights:
        """Return weights of a node: inside weights over its children, which only ``@`` symbols may join."""
        m = len(children)
        if label not in self._tables.states or not all(child.weights.any() for child in children):
            return _TreeWeights(label, np.zeros(len(self._tables.states.get(label, ()))), 0.0)
        inner = self._tables.inner[label]
        cells: dict[tuple[int, int], tuple[Weights, float]] = {}
        for a, child in enumerate(children):
            cells[a, a + 1] = self._with_hidden({child.label: child.weights}, inner), child.log_scale
        for width in range(2, m):
            for a in range(m - width + 1):
                joined, log_scale = self._joined(cells, a, a + width, inner)
                cells[a, a + width] = self._with_hidden(joined, inner), log_scale
        total = np.zeros(len(self._tables.states[label]))
        if m == 1:
            cell, log_scale = cells[0, 1]
        else:
            cell, log_scale = self._joined(cells, 0, m, inner | {label})
            total += cell.pop(label, 0.0)
            cell = self._with_hidden(cell, inner)
        for below, weights in cell.items():
            rules = self._tables.unary.get((below,), {}).get(label)
            if rules is not None:
                total += rules.apply(weights)
        return _scaled(label, total, log_scale)

    def _with_hidden(self, cell: Weights, inner: frozenset[str]) -> Weights:
        """Return cells possible over some children: ``cell``, and the ``@`` symbols with unary chains to it."""
        shared = self._tables
        result = dict(cell)
        for below, weights in cell.items():
            if not below.startswith(INTERMEDIATE):
                for parent, rules in shared.unary.get((below,), {}).items():
                    if parent in inner:
                        result[parent] = result.get(parent, 0.0) + rules.apply(weights)
        if shared.chains is not None:
            every = np.zeros(len(self.pcfg.symbols))
            for label, weights in result.items():
                every[shared.states[label]] = weights
            every[shared.hidden] = shared.chains @ every[shared.hidden]
            result.update((label, every[shared.states[label]]) for label in inner)
        return result

    def _joined(
        self, cells: dict[tuple[int, int], tuple[Weights, float]], a: int, b: int, labels: frozenset[str]
    ) -> tuple[Weights, float]:
        """Return weights of ``labels`` over children a to b-1, joined from two parts, and their log scale in nats."""
        parts = [(*cells[a, k], *cells[k, b]) for k in range(a + 1, b) if cells[a, k][0] and cells[k, b][0]]
        log_scale = max((left_scale + right_scale for _, left_scale, _, right_scale in parts), default=0.0)
        result: Weights = {}
        for left, left_scale, right, right_scale in parts:
            factor = math.exp(left_scale + right_scale - log_scale)
            for (x, over_left), (y, over_right) in itertools.product(left.items(), right.items()):
                for parent, rules in self._tables.binary.get((x, y), {}).items():
                    if parent in labels:
                        weights = factor * rules.apply(over_left, over_right)
                        result[parent] = result[parent] + weights if parent in result else weights
        most = max((weights.max() for weights in result.values()), default=0.0)
        if not most > 0.0:
            return {}, log_scale
        return {parent: weights / most for parent, weights in result.items()}, log_scale + math.log(most)


def _scaled(label: str, weights: FloatArray, log_scale: float) -> _TreeWeights:
    most = weights.max(initial=0.0)
    return (
        _TreeWeights(label, weights / most, log_scale + math.log(most))
        if most > 0.0
        else _TreeWeights(label, weights, 0.0)
    )


def posterior_samples(posterior: Posterior, k: int, rng: np.random.Generator) -> list[tuple[Tree, float]]:
    """Draw trees from the posterior, independently: a tree may occur several times.

    Args:
        posterior: the posterior over the whole chart: chains in a pruned one may pass through excluded symbols.
        k: number of trees.
        rng: random generator.

    Returns:
        Trees with treebank labels, not binarised, and ln P(tree | sentence), nats: the sum over all derivations of
        the tree, over the probability of the sentence.

    Raises:
        InputError: k is below 1, or the label of the start symbol begins with ``@``.
    """
    if k < 1:
        raise InputError(f"the number of samples must be 1 or more, not {k}")
    scores = TreeScores(posterior.pcfg)
    trees = [surface(posterior.sample(rng), posterior.pcfg) for _ in range(k)]
    return [(tree, scores.log_p(tree) - posterior.log_prob) for tree in trees]


class ScoredTree(NamedTuple):
    """A tree of a sentence, its score and its probability."""

    tree: Tree  #: treebank labels, not binarised
    score: float  #: score of the method that chose it, nats
    log_p: float  #: ln P(tree, sentence), nats: over all its derivations; -inf for a max-rule tree without any

    def record(self) -> dict[str, str | float | None]:
        """Return a JSON object: the tree in Penn brackets, with escapes inside words and labels, and both numbers."""
        return {"tree": str(self.tree), "score": self.score, "log_p": self.log_p if self.log_p > -math.inf else None}


def scored_trees(pcfg: PCFG, trees: Iterable[tuple[Tree, float]], sentence: Sequence[str]) -> list[ScoredTree]:
    """Return trees with their exact log probabilities, over the sentence's own words.

    Args:
        pcfg: the grammar.
        trees: treebank trees over the words as the grammar reads them, and scores in nats.
        sentence: the words of the returned trees.

    Raises:
        InputError: a tree has more or fewer words than the sentence.
    """
    scores = TreeScores(pcfg)
    return [ScoredTree(put_words(tree, sentence), score, scores.log_p(tree)) for tree, score in trees]
