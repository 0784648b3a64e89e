"""Parts of a treebank: trees held out at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from truesource.grammar.treebank.treebank import Treebank


def hold_out(bank: Treebank, share: float, seed: int) -> tuple[Treebank, Treebank | None]:
    """The trees that are kept and a random share that is held out; both in the order of the treebank.

    Args:
        bank: trees.
        share: of them to hold out, 0 to 1, rounded to whole trees.
        seed: of the choice, 0 or more.

    Returns:
        The kept trees, and the held-out ones; all trees and None where either side would be empty.
    """
    n = round(share * len(bank))
    if n == 0 or n >= len(bank):
        return bank, None
    order = np.random.default_rng([seed, 1]).permutation(len(bank))
    out = set(order[:n].tolist())
    kept = tuple(tree for i, tree in enumerate(bank) if i not in out)
    held = tuple(tree for i, tree in enumerate(bank) if i in out)
    return replace(bank, trees=kept), replace(bank, trees=held)
