"""The most probable derivation of a sentence by a linear grammar, in time linear in its length."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar._kernels.rules import ChildRules, LexicalRules, SparseRows
from truesource.grammar.inference.linear import LinearRules
from truesource.grammar.inference.viterbi import BestChains
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree


def linear_viterbi_tree(
    rules: LinearRules, lexicon: LexicalRules, chains: BestChains, sentence: Sequence[str]
) -> tuple[Tree, float]:
    """As `truesource.grammar.inference.viterbi.viterbi_tree`.

    Raises:
        InputError: the grammar cannot make the sentence.
    """
    from truesource.grammar.inference._kernels.linear_best import best_path

    pcfg, right = rules.pcfg, rules.side == "right"
    if not sentence:
        raise InputError("a sentence without tokens has no tree")
    n = len(pcfg.symbols)
    source, tag, target, logp = rules.moves()
    order = np.argsort(source, kind="stable")
    start = np.searchsorted(source[order], np.arange(n + 2)).astype(np.int32)
    moves = ChildRules(start, np.stack([tag[order], target[order]]), logp[order])
    above = _transposed(chains.rows)
    ends = (pcfg.start, n) if right else (n, pcfg.start)
    closing = _with_outer(chains.rows if right else above)
    score, *path = best_path(
        pcfg.encode(sentence), *ends, moves, closing, above, lexicon._replace(prob=pcfg.lexical_logp)
    )
    if not math.isfinite(score):
        raise InputError(f"the grammar cannot make the sentence {' '.join(sentence)!r}")
    arrived, closed, tags, made_by = (part.tolist() for part in path)

    def chain(top: int, low: int, children: tuple[Tree | str, ...]) -> Tree:
        """The best chain of unary rules over ``children`` of its lower end."""
        for state in reversed(chains.down(top, low)):
            children = (Tree(pcfg.symbols[state], children),)
        (tree,) = children
        assert isinstance(tree, Tree)
        return tree

    done: tuple[Tree | str, ...] = ()
    for i in reversed(range(len(sentence))) if right else range(len(sentence)):
        top, low = (arrived[i], closed[i]) if right else (closed[i + 1], arrived[i + 1])
        if tags[i + 1] >= n:
            done = (chain(top, low, (sentence[i],)),)
        else:
            own = chain(tags[i + 1], made_by[i + 1], (sentence[i],))
            done = (chain(top, low, (own, *done) if right else (*done, own)),)
    (tree,) = done
    assert isinstance(tree, Tree)
    return tree, float(score)


def _transposed(rows: SparseRows) -> SparseRows:
    size = len(rows.start) - 1
    found = csr_matrix((rows.value, rows.column, rows.start), shape=(size, size)).T.tocsr()
    return SparseRows(found.indptr.astype(np.int32), found.indices.astype(np.int32), found.data)


def _with_outer(rows: SparseRows) -> SparseRows:
    """With a row for the state outside all symbols, which has no chains."""
    size = len(rows.start) - 1
    column = np.append(rows.column, np.int32(size))
    return SparseRows(np.append(rows.start, rows.start[-1] + 1), column, np.append(rows.value, 0.0))
