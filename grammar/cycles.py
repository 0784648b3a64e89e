"""Symbols that come back to themselves: by unary rules alone, or at the left edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import Int32Array

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Cycles:
    """The strongly connected components of a graph of symbols that hold a cycle."""

    groups: int  #: components with a cycle
    symbols: int  #: symbols in them
    example: tuple[str, ...]  #: a shortest cycle through one symbol, which stands first and last; empty without any


def unary_cycles(pcfg: PCFG) -> Cycles:
    """Cycles of unary rules (``A -> B``, ``B -> A``); they make infinitely many derivations of one string."""
    return _cycles(pcfg, pcfg.unary)


def left_recursion(pcfg: PCFG) -> Cycles:
    """Cycles of left corners: symbols that derive symbols starting with themselves, unary cycles included."""
    return _cycles(pcfg, np.concatenate([pcfg.unary, pcfg.binary[:, :2]]))


def _cycles(pcfg: PCFG, edges: Int32Array) -> Cycles:
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(np.unique(edges, axis=0).tolist())
    found = [c for c in nx.strongly_connected_components(graph) if len(c) > 1 or all(graph.has_edge(s, s) for s in c)]
    if not found:
        return Cycles(0, 0, ())
    first = min(min(component) for component in found)
    if graph.has_edge(first, first):
        path = [first]
    else:
        path = min(
            (nx.shortest_path(graph, child, first) for child in _inside(graph, found, first)),
            key=lambda states: (len(states), states),
        )
        path = [first, *path[:-1]]
    names = tuple(pcfg.symbols[state] for state in (*path, first))
    return Cycles(len(found), sum(map(len, found)), names)


def _inside(graph: nx.DiGraph[int], found: list[set[int]], state: int) -> list[int]:
    """Successors of a state within its component."""
    component = next(c for c in found if state in c)
    return sorted(child for child in graph.successors(state) if child in component)
