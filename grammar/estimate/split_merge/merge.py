"""The merge: the sibling pairs whose split gained least become one substate again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from grammar.estimate.split_merge.encode import Forest
from grammar.estimate.split_merge.estep import expected_counts, inside
from grammar.estimate.split_merge.parameters import Layout, Parameters, SplitTree


def pair_shares(parameters: Parameters, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight of each substate in the mixture with its sibling, (rows,): its share of their expected count."""
    totals = parameters.row_totals(counts)
    share = np.ones_like(totals)
    for row in _pair_rows(parameters.layout):
        pair = totals[row : row + 2]
        share[row : row + 2] = pair / pair.sum() if pair.sum() > 0.0 else 0.5
    return share


def pair_losses(forests: Sequence[Forest], parameters: Parameters, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Approximate log-likelihood lost by merging each sibling pair alone, (rows,), nats; 0 on other rows.

    At every occurrence of the symbol the pair's inside values are replaced by their mixture and their
    outside values by their sum, everything else as it was (Petrov et al. 2006, section 2.2). The loss of
    substates ``2k`` and ``2k + 1`` stands at the row of ``2k``.
    """
    from grammar.estimate.split_merge import _kernels

    layout, prob = parameters.layout, parameters.prob
    loss = np.zeros(layout.n_rows)
    for forest in forests:
        up = inside(forest, layout, prob)
        weights = np.where(np.isfinite(up.log_probs), forest.weights, 0.0)
        nodes = (forest.rule, forest.left, forest.right, up.offset, layout.rules, prob, up.vector, up.scale)
        _kernels.merge_losses(*nodes, forest.roots, weights, share, loss)
    return loss


def merge(forests: Sequence[Forest], parameters: Parameters, fraction: float) -> Parameters:
    """Merge ``fraction`` of the sibling pairs of the last split (rounded down), those that lose least first.

    A merged substate's rules are the mixture of the pair's by expected count; as a child its
    probabilities add up. All symbols stand in one ranking; ties go by symbol and substate.
    """
    _, counts = expected_counts(forests, parameters)
    share = pair_shares(parameters, counts)
    rows = _pair_rows(parameters.layout)
    losses = pair_losses(forests, parameters, share)[rows]
    chosen = rows[np.argsort(losses, kind="stable")[: int(fraction * len(rows))]]
    return merge_rows(parameters, share, set(chosen.tolist()))


def merge_rows(parameters: Parameters, share: NDArray[np.float64], chosen: set[int]) -> Parameters:
    """Merge the pairs whose first substates stand at the rows ``chosen``."""
    old_layout = parameters.layout
    firsts: list[NDArray[np.int64]] = []  # per symbol, the old substates that start a new one
    trees: list[SplitTree] = []
    for symbol, (n, tree) in enumerate(zip(old_layout.substates, parameters.trees, strict=True)):
        row = int(old_layout.first_row[symbol])
        merged = {k for k in range(0, n, 2) if row + k in chosen}
        kept = [k for k in range(n) if k % 2 == 0 or k - 1 not in merged]
        firsts.append(np.array(kept, dtype=np.int64))
        trees.append(_merge_tree(tree, {k: i for i, k in enumerate(kept)}, merged))
    layout = Layout(old_layout.table, tuple(len(first) for first in firsts))
    firsts.append(np.zeros(1, dtype=np.int64))  # serves index -1: no child
    scores = np.empty(layout.size)
    for (block, old), new in zip(parameters.blocks(), layout.blocks, strict=True):
        row = int(old_layout.first_row[block.parent])
        weight = np.ones(block.shape[3])
        for k in range(0, block.shape[3], 2):
            if row + k in chosen:
                weight[k : k + 2] = share[row + k : row + k + 2]
        block_scores = old * weight
        for axis, symbol in enumerate((block.left, block.right, block.parent), start=1):
            block_scores = np.add.reduceat(block_scores, firsts[symbol], axis=axis)
        scores[new.start : new.stop] = block_scores.ravel()
    return Parameters(layout, np.zeros(layout.size), tuple(trees)).normalised(scores)


def _pair_rows(layout: Layout) -> NDArray[np.int64]:
    """Rows of the first substates of all pairs; every symbol but the start symbol has been split."""
    rows = [
        np.arange(first, first + n, 2)
        for first, n in zip(layout.first_row[1:-1].tolist(), layout.substates[1:], strict=True)
    ]
    return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)


def _merge_tree(tree: SplitTree, new: dict[int, int], merged: set[int]) -> SplitTree:
    if isinstance(tree, int):
        return new[tree]
    if isinstance(tree[0], int) and tree[0] in merged:
        return new[tree[0]]
    return [_merge_tree(branch, new, merged) for branch in tree]
