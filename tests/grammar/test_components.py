"""Strongly connected components, their order, and shortest cycles, against networkx."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from truesource.grammar.inference.components import shortest_cycle, strong_components


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    n = draw(st.integers(1, 8))
    node = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(node, node), max_size=16))


def arrays(edges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    above, below = np.array(edges, dtype=np.int32).reshape(-1, 2).T
    return above, below


@given(graphs())
def test_components_stand_above_what_they_lead_to(case: tuple[int, list[tuple[int, int]]]) -> None:
    n, edges = case
    graph: nx.DiGraph[int] = nx.DiGraph(edges)
    graph.add_nodes_from(range(n))
    components = strong_components(n, *arrays(edges))
    parts = components.from_the_top()
    assert {frozenset(part.tolist()) for part in parts} == {*map(frozenset, nx.strongly_connected_components(graph))}
    assert all(part.tolist() == sorted(part.tolist()) for part in parts)
    place = {int(node): k for k, part in enumerate(parts) for node in part}
    level = components.level[components.number]
    for above, below in edges:
        assert place[above] <= place[below]
        assert (level[above] > level[below]) == (place[above] != place[below])
    for node in range(n):
        inside = any(place[a] == place[b] == place[node] for a, b in edges)
        assert components.cyclic[components.number[node]] == inside


@given(graphs())
def test_a_shortest_cycle_is_one_of_the_graph(case: tuple[int, list[tuple[int, int]]]) -> None:
    n, edges = case
    graph: nx.DiGraph[int] = nx.DiGraph(edges)
    for node in graph.nodes:
        ways = [nx.shortest_path_length(graph, b, node) for a, b in edges if a == node and nx.has_path(graph, b, node)]
        if ways:
            cycle = shortest_cycle(n, *arrays(edges), node)
            assert cycle[0] == node
            assert len(cycle) == len({*cycle}) == min(ways) + 1
            assert {*itertools.pairwise([*cycle, node])} <= {*edges}
