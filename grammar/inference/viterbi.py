"""The most probable derivation of a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from truesource.grammar._kernels.rules import SparseRows
from truesource.grammar.inference.batch import NothingLeftError, require_memory
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

if TYPE_CHECKING:
    from truesource.grammar.inference.tables import GrammarTables
    from truesource.grammar.rules import GrammarRules


@dataclass(frozen=True, eq=False)
class BestChains:
    """Most probable unary chain between any two symbols."""

    rows: SparseRows  #: (S, S) log probabilities, 0 on the diagonal
    place: IntArray  #: (S,) of each symbol among the K that have unary rules; -1 of others
    before: Int32Array  #: (K, K) place of the symbol before B on the best chain from A, negative where there is none
    touched: IntArray  #: (K,) the symbols that have unary rules

    def down(self, top: int, low: int) -> list[int]:
        """States of the best chain from ``top`` to ``low``, both included."""
        path = [low]
        while path[-1] != top:
            path.append(int(self.touched[self.before[self.place[top], self.place[path[-1]]]]))
        return path[::-1]


def best_chains(pcfg: GrammarRules) -> BestChains:
    """Most probable unary chain between any two symbols."""
    n = len(pcfg.symbols)
    touched = np.unique(pcfg.unary).astype(np.int64)
    place = np.full(n, -1)
    place[touched] = np.arange(len(touched))
    # a rule of probability 1 must not read as "no edge"
    weight = np.maximum(-pcfg.unary_logp, 1e-300)
    above, below = place[pcfg.unary].T
    distance, before = dijkstra(
        csr_matrix((weight, (above, below)), shape=(len(touched),) * 2), return_predecessors=True
    )
    row, column = np.nonzero(np.isfinite(distance))
    alone = np.flatnonzero(place < 0)
    rows = csr_matrix(
        (
            np.append(-distance[row, column], np.zeros(len(alone))),
            (np.append(touched[row], alone), np.append(touched[column], alone)),
        ),
        shape=(n, n),
    )
    logs = SparseRows(rows.indptr.astype(np.int32), rows.indices.astype(np.int32), rows.data)
    return BestChains(logs, place, before, touched)


class ViterbiCharts(NamedTuple):
    """The best derivation of every symbol over every span, -1 where there is none."""

    words: Int32Array  #: (n,) numbers of the words
    best: FloatArray  #: (spans, S) its log probability, -inf where there is none
    chain: Int32Array  #: (spans, S) state at the lower end of its unary chain
    rule: Int32Array  #: (spans, S) rule of that state below its chains
    split: Int32Array  #: (spans, S) and its split


def viterbi_charts(
    tables: GrammarTables, chains: BestChains, sentence: Sequence[str], allowed: BoolArray | None = None
) -> ViterbiCharts:
    """The most probable derivation of each symbol over each span; arguments and errors are those of `viterbi_tree`."""
    from truesource.grammar.inference._kernels import viterbi as kernels

    pcfg, pairs, lexicon = tables.pcfg, tables.pairs, tables.lexicon
    words = pcfg.encode(sentence)
    if len(words) == 0:
        raise InputError("a sentence without tokens has no tree")
    n = len(words)
    require_memory(n, n * (n + 1) // 2 * len(pcfg.symbols) * 20)  # a float64 and three int32
    charts = kernels.viterbi(
        words,
        np.zeros((0, 0), dtype=np.bool_) if allowed is None else allowed,
        chains.rows,
        pairs._replace(prob=pcfg.binary_logp),
        lexicon._replace(prob=pcfg.lexical_logp),
    )
    if not math.isfinite(charts[0][n * (n - 1) // 2, pcfg.start]):
        if allowed is not None:
            raise NothingLeftError(sentence)
        raise InputError(f"the grammar cannot make the sentence {' '.join(sentence)!r}")
    return ViterbiCharts(words, *charts)


def viterbi_tree(
    tables: GrammarTables, chains: BestChains, sentence: Sequence[str], allowed: BoolArray | None = None
) -> tuple[Tree, float]:
    """The most probable derivation of the grammar as it is (binarised, with its own symbols), and its nats.

    Args:
        tables: of the grammar.
        chains: from `best_chains`.
        sentence: its words.
        allowed: which symbols may cover which span, (spans, S); all of them if None.

    Raises:
        InputError: the grammar cannot make the sentence (as `NothingLeftError`: with what is allowed), or its chart
            does not fit the memory of this machine.
    """
    pcfg, n = tables.pcfg, len(sentence)
    _, best, chain, rule, split = viterbi_charts(tables, chains, sentence, allowed)

    def bottom(i: int, j: int, top: int) -> tuple[list[str], int]:
        """Names down the best unary chain over (i, j) from ``top``, and the state at its lower end."""
        low = int(chain[j * (j - 1) // 2 + i, top])
        return [pcfg.symbols[s] for s in chains.down(top, low)], low

    # post-order over an explicit stack: (i, j, state, expanded)
    stack: list[tuple[int, int, int, bool]] = [(0, n, pcfg.start, False)]
    done: list[Tree] = []
    while stack:
        i, j, state, expanded = stack.pop()
        names, low = bottom(i, j, state)
        span = j * (j - 1) // 2 + i
        if j - i == 1:
            node = Tree(names[-1], (sentence[i],))
        elif not expanded:
            k, r = int(split[span, low]), int(rule[span, low])
            _, b, c = pcfg.binary[r]
            stack += [(i, j, state, True), (k, j, int(c), False), (i, k, int(b), False)]
            continue
        else:
            right, left = done.pop(), done.pop()
            node = Tree(names[-1], (left, right))
        for name in reversed(names[:-1]):
            node = Tree(name, (node,))
        done.append(node)
    return done[0], float(best[n * (n - 1) // 2, pcfg.start])
