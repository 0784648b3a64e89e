"""The split: every substate becomes two, nearly equal."""

from __future__ import annotations

import numpy as np

from truesource.grammar.estimate.split_merge.parameters import Layout, Parameters, SplitTree
from truesource.grammar.support.arrays import FloatArray


def split(parameters: Parameters, noise: float, generator: np.random.Generator) -> Parameters:
    """Split every substate of every symbol but the start symbol in two.

    A rule's probability is shared equally among the copies of its children and changed by up to
    ``noise`` (relative), up for one member of a pair and down for the other: over the two copies of the
    first child that was split or, in a lexical rule, over the two copies of the parent. Substate ``k``
    becomes ``2k`` and ``2k + 1``.

    Args:
        parameters: the grammar before.
        noise: largest relative change, 0 to below 1.
        generator: draws the changes, uniformly.
    """
    factor = [1] + [2] * (len(parameters.trees) - 1)
    layout = Layout(
        parameters.layout.table,
        tuple(n * f for n, f in zip(parameters.layout.substates, factor, strict=True)),
    )
    factor.append(1)  # serves index -1: no child
    scores = np.empty(layout.size)
    for (block, old), new in zip(parameters.blocks(), layout.blocks, strict=True):
        copies = (factor[block.left], factor[block.right], factor[block.parent])
        shared = old / (copies[0] * copies[1])
        for axis, n in enumerate(copies, start=1):
            shared = np.repeat(shared, n, axis=axis)
        if 2 in copies:
            axis = 1 + copies.index(2)
            shared = shared * (1.0 + noise * _antisymmetric(shared.shape, axis, generator))
        scores[new.start : new.stop] = shared.ravel()
    trees = tuple(tree if i == 0 else _split_tree(tree) for i, tree in enumerate(parameters.trees))
    return Parameters.of_scores(layout, scores, trees)


def _antisymmetric(shape: tuple[int, ...], axis: int, generator: np.random.Generator) -> FloatArray:
    """Numbers in (-1, 1), each the negative of its neighbour in the pairs along ``axis``."""
    half = generator.uniform(-1.0, 1.0, (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :]))
    return np.stack([half, -half], axis=axis + 1).reshape(shape)


def _split_tree(tree: SplitTree) -> SplitTree:
    if isinstance(tree, int):
        return [2 * tree, 2 * tree + 1]
    return [_split_tree(branch) for branch in tree]
