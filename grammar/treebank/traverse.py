"""Bottom-up traversal of trees of any depth, without recursion, and of many trees, without pauses."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from truesource.grammar.tree import Tree

R = TypeVar("R")


def fold(tree: Tree, combine: Callable[[Tree, list[R]], R]) -> R:
    """Compute a value for every node from those of its children; return the one of ``tree``.

    Args:
        tree: where to start.
        combine: called once per node with the node and the values of its children that are trees, left to
            right; words have no value (a preterminal gets an empty list).
    """
    nodes: list[tuple[Tree, int]] = []  # parents before children, right to left; number of subtrees
    stack = [tree]
    while stack:
        node = stack.pop()
        before = len(stack)
        for child in node.children:
            if isinstance(child, Tree):
                stack.append(child)
        nodes.append((node, len(stack) - before))
    values: list[R] = []
    for node, n_children in reversed(nodes):
        if n_children:
            inner = values[-n_children:]
            del values[-n_children:]
            values.append(combine(node, inner))
        else:
            values.append(combine(node, []))
    return values.pop()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Trees hold no cycles, and collecting among millions of them doubles the time to read."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
