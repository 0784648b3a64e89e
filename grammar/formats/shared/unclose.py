"""Undoing the closure of unary rules that the text dumps of the Berkeley trainer hold.

Such a dump has every rule ``A -> A`` with probability one, and for every chain of unary rules its most
probable product as one more rule. The rules of the grammar itself are those that no chain explains.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray

EXACT = 1e-9  #: relative difference between a rule and the chain that made it
PROPER = 1e-6  #: how far from one a row may sum and count as right


def is_closed(unary: Int32Array, prob: FloatArray) -> bool:
    """Whether there are rules ``A -> A`` with probability one, which a proper grammar has no use for."""
    return bool(((unary[:, 0] == unary[:, 1]) & (prob >= 1.0 - 1e-12)).any())


def base_rules(unary: Int32Array, prob: FloatArray, other: FloatArray, group: Sequence[int]) -> BoolArray:
    """Which unary rules of a closed dump belong to the grammar, (Q,).

    First all identities go, and the rules that equal a product of two others. The trainer also adds up chains
    through the states of one label; such sums cannot be told from rules by their value, so they go only from rows
    that still sum to more than one, the best explained first, and only while the row does not fall below one.

    Args:
        unary: (Q, 2) parent, child; each rule once.
        prob: (Q,) probabilities.
        other: (S,) total probability of each symbol's binary and lexical rules.
        group: (S,) number of each symbol's label.
    """
    identity = unary[:, 0] == unary[:, 1]
    product, summed = _chains(unary, np.where(identity, 0.0, prob), len(other), group)
    kept: BoolArray = ~identity & (product < prob * (1.0 - EXACT))
    sums = other + np.bincount(unary[kept, 0], weights=prob[kept], minlength=len(other))
    explained = np.minimum(summed / prob, 1.0)
    for state in np.flatnonzero(sums > 1.0 + PROPER):
        candidates = np.flatnonzero(kept & (unary[:, 0] == state) & (explained > 0.0))
        for rule in candidates[np.argsort(-explained[candidates], kind="stable")]:
            if sums[state] > 1.0 + PROPER and sums[state] - prob[rule] > 1.0 - PROPER:
                kept[rule] = False
                sums[state] -= prob[rule]
    return kept


def _chains(unary: Int32Array, prob: FloatArray, n: int, group: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Largest product of two rules that chain to each rule, and largest sum over one label between, (Q,) each."""
    keys = unary[:, 0].astype(np.int64) * n + unary[:, 1]
    order = np.argsort(keys)
    ordered = keys[order]
    by_child, by_parent = np.argsort(unary[:, 1], kind="stable"), np.argsort(unary[:, 0], kind="stable")
    into = np.searchsorted(unary[by_child, 1], np.arange(n + 1))
    out = np.searchsorted(unary[by_parent, 0], np.arange(n + 1))
    product, summed, through = np.zeros(len(keys)), np.zeros(len(keys)), np.zeros(len(keys))
    touched: list[IntArray] = []
    label = -1
    for k in np.argsort(np.asarray(group), kind="stable"):
        if group[k] != label:
            for at in touched:
                summed[at] = np.maximum(summed[at], through[at])
            for at in touched:
                through[at] = 0.0
            touched, label = [], group[k]
        above, below = by_child[into[k] : into[k + 1]], by_parent[out[k] : out[k + 1]]
        if not len(above) or not len(below):
            continue
        ends = (unary[above, 0].astype(np.int64)[:, None] * n + unary[below, 1][None, :]).ravel()
        value = np.outer(prob[above], prob[below]).ravel()
        place = np.minimum(np.searchsorted(ordered, ends), len(keys) - 1)
        hit = ordered[place] == ends
        at = order[place[hit]]
        product[at] = np.maximum(product[at], value[hit])
        through[at] += value[hit]
        touched.append(at)
    for at in touched:
        summed[at] = np.maximum(summed[at], through[at])
    return product, summed
