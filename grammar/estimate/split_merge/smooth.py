"""Smoothing: the rules of a substate drawn towards those of its siblings in the split tree."""

from __future__ import annotations

import numpy as np

from truesource.grammar.estimate.split_merge.parameters import Parameters, SplitTree
from truesource.grammar.support.arrays import FloatArray


def smooth(parameters: Parameters, rules: float, lexicon: float) -> Parameters:
    """Interpolate each substate's probabilities with the mean of its siblings'.

    Siblings of a substate are the other substates under the same top branch of the symbol's split tree;
    one without siblings stays as it is.

    Args:
        parameters: the grammar before.
        rules: weight of the mean in binary and unary rules.
        lexicon: weight of the mean in lexical rules.
    """
    scores = np.empty_like(parameters.prob)
    siblings = [_sibling_mean(tree, n) for tree, n in zip(parameters.trees, parameters.layout.substates, strict=True)]
    for block, prob in parameters.blocks():
        weight = lexicon if block.left < 0 else rules
        mean = siblings[block.parent]
        smoothed = prob @ ((1.0 - weight) * np.eye(len(mean)) + weight * mean).T
        scores[block.start : block.stop] = smoothed.ravel()
    return parameters.normalised(scores)


def substates(tree: SplitTree) -> list[int]:
    """The substates under a split tree, left to right."""
    if isinstance(tree, int):
        return [tree]
    return [leaf for branch in tree for leaf in substates(branch)]


def _sibling_mean(tree: SplitTree, n: int) -> FloatArray:
    """(n, n) matrix whose row k averages the siblings of k."""
    mean = np.eye(n)
    for branch in [tree] if isinstance(tree, int) else tree:
        leaves = substates(branch)
        if len(leaves) > 1:
            mean[np.ix_(leaves, leaves)] = (1.0 - np.eye(len(leaves))) / (len(leaves) - 1)
    return mean
