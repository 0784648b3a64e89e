"""Counts of n-grams as a file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np

from truesource.grammar.support.archives import ArrayKind, integers, read_arrays
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import atomic_path
from truesource.lmtrain.architectures.ngram.smoothing import NgramEstimate
from truesource.lmtrain.architectures.ngram.trie import Trie

FILE = "ngram.npz"
_ARRAYS = tuple(field.name for field in fields(Trie))


def save_counts(estimate: NgramEstimate, folder: Path) -> None:
    """Write ``ngram.npz``: the arrays of the trie and the discounts (N, 3); equal ones give equal bytes."""
    arrays = {name: getattr(estimate.trie, name) for name in _ARRAYS}
    with atomic_path(folder / FILE) as temporary, temporary.open("wb") as stream:
        np.savez(stream, discount=estimate.discount, **arrays)


def load_counts(folder: Path) -> tuple[Trie, FloatArray]:
    """Read what `save_counts` wrote: the trie and the discounts.

    Raises:
        InputError: the file is missing or damaged, or lacks an array or holds another (the message names it).
    """
    path = folder / FILE
    what, remedy = "the file of counts of this n-gram model", "train the model again"
    kinds = {**dict.fromkeys(_ARRAYS, integers()), "discount": ArrayKind("f", (None, 3))}
    arrays = read_arrays(path, kinds, what=what, remedy=remedy, others=False)
    discount = arrays.pop("discount")
    trie = Trie(**arrays)
    try:
        trie.check()
        if discount.shape != (trie.order, 3) or not ((discount >= 0.0) & (discount <= [1.0, 2.0, 3.0])).all():
            raise ValueError("the discounts do not fit")
    except (ValueError, IndexError) as error:
        raise InputError(f"{what} is damaged: {error}; {remedy}", path) from error
    return trie, discount.astype(np.float64)
