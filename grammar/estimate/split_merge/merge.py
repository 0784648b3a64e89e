"""The merge: the sibling pairs whose split gained least become one substate again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truesource.grammar.estimate.split_merge.encode import Forest
from truesource.grammar.estimate.split_merge.estep import expected_entries, inside
from truesource.grammar.estimate.split_merge.parameters import Layout, Parameters, SplitTree
from truesource.grammar.estimate.split_merge.sparse import SparseRules
from truesource.grammar.support.arrays import FloatArray, IntArray


def pair_shares(rules: SparseRules, counts: FloatArray) -> FloatArray:
    """Weight of each substate in the mixture with its sibling, (rows,): its share of their expected count.

    Args:
        rules: the grammar.
        counts: expected count of each of its entries.
    """
    totals = np.asarray(np.bincount(rules.rows, counts, rules.layout.n_rows), dtype=np.float64)
    share = np.ones_like(totals)
    for row in _pair_rows(rules.layout):
        pair = totals[row : row + 2]
        share[row : row + 2] = pair / pair.sum() if pair.sum() > 0.0 else 0.5
    return share


def pair_losses(forests: Sequence[Forest], rules: SparseRules, share: FloatArray) -> FloatArray:
    """Approximate log-likelihood lost by merging each sibling pair alone, (rows,), nats; 0 on other rows.

    At every occurrence of the symbol the pair's inside values are replaced by their mixture and their
    outside values by their sum, everything else as it was (Petrov et al. 2006, section 2.2). The loss of
    substates ``2k`` and ``2k + 1`` stands at the row of ``2k``.
    """
    from truesource.grammar.estimate.split_merge._kernels.merge import merge_losses

    layout = rules.layout
    loss = np.zeros(layout.n_rows)
    for forest in forests:
        up = inside(forest, rules)
        weights = np.where(np.isfinite(up.log_probs), forest.weights, 0.0)
        charts = (up.nodes, rules.sizes, rules.entries, up.vector, up.scale)
        merge_losses(*charts, forest.roots, weights, layout.rules[:, 4], share, loss)
    return loss


def merge(forests: Sequence[Forest], rules: SparseRules, fraction: float) -> Parameters:
    """Merge ``fraction`` of the sibling pairs of the last split (rounded down), those that lose least first.

    A merged substate's rules are the mixture of the pair's by expected count; as a child its
    probabilities add up. All symbols stand in one ranking; ties go by symbol and substate.
    """
    _, counts = expected_entries(forests, rules)
    share = pair_shares(rules, counts)
    rows = _pair_rows(rules.layout)
    losses = pair_losses(forests, rules, share)[rows]
    chosen = rows[np.argsort(losses, kind="stable")[: int(fraction * len(rows))]]
    return merge_rows(rules, share, set(chosen.tolist()))


def merge_rows(rules: SparseRules, share: FloatArray, chosen: set[int]) -> Parameters:
    """Merge the pairs whose first substates stand at the rows ``chosen``."""
    old = rules.layout
    number = np.zeros(old.n_rows + 1, dtype=np.int64)  # new substate of each old row; the last one: no child
    weight = np.ones(old.n_rows)
    sizes: list[int] = []
    trees: list[SplitTree] = []
    for symbol, (n, tree) in enumerate(zip(old.substates, rules.trees, strict=True)):
        row = int(old.first_row[symbol])
        merged = {k for k in range(0, n, 2) if row + k in chosen}
        kept = [k for k in range(n) if k % 2 == 0 or k - 1 not in merged]
        number[row : row + n] = np.searchsorted(kept, np.arange(n), side="right") - 1
        for k in merged:
            weight[row + k : row + k + 2] = share[row + k : row + k + 2]
        sizes.append(len(kept))
        trees.append(_merge_tree(tree, {k: i for i, k in enumerate(kept)}, merged))
    layout = Layout(old.table, tuple(sizes))
    rule, pair = rules.places
    left, right = (number[old.first_row[old.table.rules[rule, 1 + i]] + rules.entries.pair[pair, i]] for i in range(2))
    start, n_parent, _, n_right = layout.rules[rule, :4].T
    place = start + (left * n_right + right) * n_parent + number[rules.rows]
    scores = np.asarray(np.bincount(place, rules.prob * weight[rules.rows], layout.size), dtype=np.float64)
    return Parameters.of_scores(layout, scores, tuple(trees))


def _pair_rows(layout: Layout) -> IntArray:
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
