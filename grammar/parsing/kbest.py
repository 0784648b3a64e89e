"""The k best trees of a sentence: by the product of posterior rule probabilities, or by their best derivation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from truesource.grammar.inference.closure import reachable
from truesource.grammar.inference.max_rule import RuleCharts, coarse_rules, max_rule_charts
from truesource.grammar.inference.posterior import Posterior, tables
from truesource.grammar.inference.rules import child_rules, unary_matrix
from truesource.grammar.inference.viterbi import ViterbiCharts, viterbi_charts
from truesource.grammar.parsing.lazy_forest import EdgeList, Place, k_best
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.tree import Tree

if TYPE_CHECKING:
    from truesource.grammar._kernels.rules import ChildRules
    from truesource.grammar.inference.exact import Exact
    from truesource.grammar.pcfg import PCFG


def k_best_max_rule(found: Posterior, k: int) -> list[tuple[Tree, float]]:
    """The k treebank trees with the greatest product of posterior rule probabilities, best first.

    The product is that of `truesource.grammar.inference.max_rule.max_rule_tree`, whose tree comes first. It is one of
    binarised trees: of those that show the same treebank tree the best counts. No label stands twice on one unary
    chain of a binarised tree. As no factor exceeds 1, going round makes no tree better, and there would be no end of
    such trees.

    Returns:
        Trees with treebank labels, not binarised, all different, and nats, at most 0; fewer than k only if there are
        no more. Trees of equal score stand in the same order every time.

    Raises:
        InputError: k is below 1, or the label of the start symbol begins with ``@``.
    """
    return k_best(lambda least: _CoarseRewrites(found, max_rule_charts(found, least)), k)


def k_best_viterbi(pcfg: PCFG, sentence: Sequence[str], k: int) -> list[tuple[Tree, float]]:
    """The k treebank trees with the most probable derivations, most probable first.

    A treebank tree has many derivations: its labels are split into symbols, and binarisation may add more. The k most
    probable derivations of a split grammar would mostly be one tree, so the trees are all different, and each has the
    log probability of its best derivation; the sum over all of them is `tree_scores.TreeScores.log_p`. No symbol
    stands twice on one unary chain of a derivation, which makes none more probable.

    Returns:
        Trees with treebank labels, not binarised, and nats; fewer than k only if there are no more. Trees of equal
        score stand in the same order every time.

    Raises:
        InputError: k is below 1, the label of the start symbol begins with ``@``, the grammar cannot make the sentence,
            or, as `TooLongError`, its chart does not fit into memory.
    """
    charts = viterbi_charts(pcfg.exact, pcfg.exact.best_chains, sentence)
    rewrites = _DerivationRewrites(pcfg, sentence, charts)
    return k_best(lambda _: rewrites, k)


def _sorted(split: Int32Array, left: Int32Array, right: Int32Array, weight: FloatArray, score: FloatArray) -> EdgeList:
    order = np.argsort(-score, kind="stable")
    return EdgeList(*(column[order].tolist() for column in (split, left, right, weight, score)))


def _reached(links: FloatArray) -> list[frozenset[int]]:
    """What follows from each number along positive entries, itself included."""
    return [frozenset(np.flatnonzero(row).tolist()) for row in reachable(links)]


_LABELS_BELOW: WeakKeyDictionary[Exact, list[frozenset[int]]] = WeakKeyDictionary()
_DERIVATION_TABLES: WeakKeyDictionary[Exact, tuple[ChildRules, ChildRules, list[frozenset[int]]]] = WeakKeyDictionary()


class _CoarseRewrites:
    """Coarse rules over a sentence, weighted as in max-rule trees."""

    def __init__(self, found: Posterior, charts: RuleCharts) -> None:
        exact = found.pcfg.exact
        self.found, self.charts, self.words = found, charts, found.sentence
        self.known, self.coarse, self.pairs = tables(exact), coarse_rules(exact), exact.pairs
        self.labels, self.floor = self.known.labels, charts.floor
        self.start = int(self.known.state_label[found.pcfg.start])
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
        from truesource.grammar.parsing._kernels import edges as kernels

        best, below = self.charts.best, self.charts.below
        chart, closed = self.found.chart, self.found.closed
        return _sorted(
            *kernels.coarse_edges(
                place, least, best, below, chart, closed, self.known.state_label, self.pairs, self.coarse
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
        from truesource.grammar.parsing._kernels import edges as kernels

        return _sorted(
            *kernels.derivation_edges(
                place, least, self.charts.best, self.charts.words, self.binary, self.unary, self.lexicon
            )
        )
