"""The order of a forest's nodes: batches of one base rule whose children are all done."""

from __future__ import annotations

import numpy as np

from truesource.grammar.support.arrays import IntArray


def schedule(rule: IntArray, left: IntArray, right: IntArray, n_phrasal: int) -> tuple[IntArray, IntArray]:
    """Put the nodes of a graph in an order in which children come first.

    Takes again and again the base rule with the largest share of its remaining nodes ready (no child left to do),
    all of those at once: few, large batches, in which nodes with equal children are neighbours. Rules from
    ``n_phrasal`` on are lexical: their nodes have no child, stand first, by rule, and in no batch.

    Args:
        rule: base rule of each node, (N,); node 0 stands for an absent child.
        left: left or only child, 0 where there is none.
        right: right child, 0 where there is none.
        n_phrasal: number of phrasal rules.

    Returns:
        The nodes in order, (N,), node 0 first, and where each batch begins in it, (M + 1,), with N at the end.
    """
    from truesource.grammar.estimate.split_merge._kernels.forest import release

    n = len(rule)
    phrasal = np.flatnonzero((rule >= 0) & (rule < n_phrasal))
    ends = np.cumsum(np.bincount(rule[phrasal], minlength=n_phrasal))  # of the nodes of each rule in `ready`
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
