"""The most probable derivation of a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from truesource.grammar._kernels.rules import SparseRows
from truesource.grammar.arrays import Int32Array
from truesource.grammar.errors import InputError
from truesource.grammar.inference.batch import require_memory
from truesource.grammar.tree import Tree

if TYPE_CHECKING:
    from truesource.grammar.inference.tables import GrammarTables
    from truesource.grammar.rules import GrammarRules


def best_chains(pcfg: GrammarRules) -> tuple[SparseRows, Int32Array]:
    """Most probable unary chain between any two symbols.

    Returns:
        The log probabilities by rows (0 on the diagonal), and before (S, S): the symbol before B on the best
        chain from A, negative where there is none.
    """
    n = len(pcfg.symbols)
    # a rule of probability 1 must not read as "no edge"
    weight = np.maximum(-pcfg.unary_logp, 1e-300)
    graph = csr_matrix((weight, (pcfg.unary[:, 0], pcfg.unary[:, 1])), shape=(n, n))
    distance, before = dijkstra(graph, return_predecessors=True)
    row, column = np.nonzero(np.isfinite(distance))
    start = np.searchsorted(row, np.arange(n + 1)).astype(np.int32)
    return SparseRows(start, column.astype(np.int32), -distance[row, column]), before


def viterbi_tree(
    tables: GrammarTables, best_chains: tuple[SparseRows, Int32Array], sentence: Sequence[str]
) -> tuple[Tree, float]:
    """The most probable derivation of the grammar as it is (binarised, with its own symbols), and its nats.

    Args:
        tables: of the grammar.
        best_chains: from `best_chains`.
        sentence: its words.

    Raises:
        InputError: the grammar cannot make the sentence, or its chart does not fit the memory of this machine.
    """
    from truesource.grammar.inference._kernels import viterbi as kernels

    pcfg, pairs, lexicon = tables.pcfg, tables.pairs, tables.lexicon
    words = pcfg.encode(sentence)
    if len(words) == 0:
        raise InputError("a sentence without tokens has no tree")
    n = len(words)
    require_memory(n, n * (n + 1) // 2 * len(pcfg.symbols) * 20)  # a float64 and three int32
    chains, before = best_chains
    best, chain, rule, split = kernels.viterbi(
        words, chains, pairs._replace(prob=pcfg.binary_logp), lexicon._replace(prob=pcfg.lexical_logp)
    )
    score = float(best[n * (n - 1) // 2, pcfg.start])
    if not math.isfinite(score):
        raise InputError(f"the grammar cannot make the sentence {' '.join(sentence)!r}")

    def bottom(i: int, j: int, top: int) -> tuple[list[str], int]:
        """Names down the best unary chain over (i, j) from ``top``, and the state at its lower end."""
        low = int(chain[j * (j - 1) // 2 + i, top])
        path = [low]
        while path[-1] != top:
            path.append(int(before[top, path[-1]]))
        return [pcfg.symbols[s] for s in reversed(path)], low

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
    return done[0], score
