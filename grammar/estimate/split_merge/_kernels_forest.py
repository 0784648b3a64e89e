"""Compiled order of a forest's nodes: batches of one base rule whose children are all done."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def schedule(rule, left, right, n_rules, order, batches):  # type: ignore[no-untyped-def]
    """Fill ``order`` with nodes 1.. of a graph in batches; the number of batches is returned.

    Takes again and again the base rule with the largest share of its remaining nodes ready (no child left to do),
    all of those at once: few, large batches, in which nodes with equal children are neighbours. Rules from
    ``n_rules`` on are lexical: their nodes have no child, stand first, by rule, and in no batch. ``batches``
    receives where each batch begins in the order, which has node 0 in front.
    """
    n = len(rule)
    waiting, first_parent = np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    n_of_rule = np.zeros(n_rules + 1, np.int64)
    for i in range(1, n):
        n_of_rule[min(rule[i], n_rules)] += 1
        for child in (left[i], right[i]):
            if child != 0:
                waiting[i] += 1
                first_parent[child + 1] += 1
    first_parent = np.cumsum(first_parent)
    parents, filled = np.empty(first_parent[n], np.int64), first_parent.copy()
    for i in range(1, n):
        for child in (left[i], right[i]):
            if child != 0:
                parents[filled[child]] = i
                filled[child] += 1
    ends = np.cumsum(n_of_rule)
    begin = ends - n_of_rule
    end = begin.copy()
    ready = np.empty(n, np.int64)
    done = 1
    order[0] = 0
    for i in range(1, n):
        if rule[i] >= n_rules:
            order[done] = i
            done += 1
    order[1:done] = order[1:done][np.argsort(rule[order[1:done]], kind="mergesort")]
    place = np.zeros(n, np.int64)
    fresh, n_batches, n_lexical = 1, 0, done
    while True:
        for at in range(fresh, done):
            node = order[at]
            place[node] = at
            for k in range(first_parent[node], first_parent[node + 1]):
                parent = parents[k]
                waiting[parent] -= 1
                if waiting[parent] == 0:
                    ready[end[rule[parent]]] = parent
                    end[rule[parent]] += 1
        fresh = done
        best, most, share = 0, 0, 0.0
        for r in range(n_rules):
            if end[r] > begin[r] and (end[r] - begin[r]) / (ends[r] - begin[r]) > share:
                best, most = r, end[r] - begin[r]
                share = most / (ends[r] - begin[r])
        if most == 0:
            return n_batches
        batches[n_batches] = done
        n_batches += 1
        batch = ready[begin[best] : end[best]]
        first, second = place[left[batch]], place[right[batch]]
        if first.max() >= n_lexical and second.max() < n_lexical and second.max() > 0:
            first, second = second, first
        order[done : done + most] = batch[np.argsort(first * n + second, kind="mergesort")]
        begin[best] = end[best]
        done += most
