"""Strongly connected components of a graph of symbols."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components

from truesource.grammar.support.arrays import BoolArray, Int32Array, IntArray


class Components(NamedTuple):
    """The strongly connected components of a graph of ``n`` nodes."""

    number: Int32Array  #: component of each node, (n,)
    level: IntArray  #: level of each component, above all levels that its edges lead to, 0 without any, (C,)
    cyclic: BoolArray  #: whether a component has an edge inside, (C,)

    def from_the_top(self) -> list[IntArray]:
        """Return the nodes of each component, ascending; edges lead to the same or to a later component."""
        nodes = np.argsort(self.number, kind="stable")
        parts = np.split(nodes, np.cumsum(np.bincount(self.number))[:-1])
        return sorted(parts, key=lambda part: (-self.level[self.number[part[0]]], part[0]))


def strong_components(n: int, above: Int32Array, below: Int32Array) -> Components:
    """Return the strongly connected components of the edges ``above`` (E,) to ``below`` (E,) between ``n`` nodes."""
    n_components, number = connected_components(_graph(n, above, below), connection="strong")
    inner = number[above] == number[below]
    edges = np.unique(np.stack([number[above[~inner]], number[below[~inner]]]), axis=1)
    level, before = np.zeros(n_components, dtype=np.int64), None
    while before is None or not np.array_equal(level, before):
        before = level.copy()
        np.maximum.at(level, edges[0], before[edges[1]] + 1)
    return Components(number, level, np.bincount(number[above[inner]], minlength=n_components) > 0)


def shortest_cycle(n: int, above: Int32Array, below: Int32Array, node: int) -> list[int]:
    """Return the nodes of a shortest cycle through ``node``, which comes first, once.

    ``node`` must be on a cycle; of several shortest ones, that to the smallest next node is returned.
    """
    after = np.unique(below[above == node])
    if node in after:
        return [node]
    # a search against the direction of the edges: the predecessor of a node is the next one on its way to ``node``
    reached, towards = breadth_first_order(_graph(n, below, above), node, return_predecessors=True)
    distance = np.full(n, n, dtype=np.int64)
    distance[node] = 0
    for each in reached[1:]:
        distance[each] = distance[towards[each]] + 1
    cycle = [node, int(after[np.argmin(distance[after])])]
    while towards[cycle[-1]] != node:
        cycle.append(int(towards[cycle[-1]]))
    return cycle


def _graph(n: int, above: Int32Array, below: Int32Array) -> csr_matrix[np.int32]:
    return csr_matrix((np.ones(len(above), dtype=np.int32), (above, below)), shape=(n, n))
