"""Counts of n-grams as a file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grammar.errors import InputError
from grammar.files import atomic_path
from grammar.formats.npz import UNREADABLE
from lmtrain.ngram.smoothing import Estimate
from lmtrain.ngram.trie import Trie

FILE = "ngram.npz"
_ARRAYS = tuple(field.name for field in fields(Trie))


def save_counts(estimate: Estimate, folder: Path) -> None:
    """Write ``ngram.npz``: the arrays of the trie and the discounts (N, 3); equal ones give equal bytes."""
    arrays = {name: getattr(estimate.trie, name) for name in _ARRAYS}
    with atomic_path(folder / FILE) as temporary, temporary.open("wb") as stream:
        np.savez(stream, discount=estimate.discount, **arrays)


def load_counts(folder: Path) -> tuple[Trie, NDArray[np.float64]]:
    """Read what `save_counts` wrote: the trie and the discounts.

    Raises:
        InputError: the file is missing or damaged, or lacks an array or holds another (the message names it).
    """
    path = folder / FILE
    if not path.is_file():
        raise InputError("the counts of this n-gram model are missing; train it again", path)
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            _require_arrays(set(archive.files), path)
            trie = Trie(*(archive[name] for name in _ARRAYS))
            discount = archive["discount"]
        trie.check()
        if discount.shape != (trie.order, 3) or not ((discount >= 0.0) & (discount <= [1.0, 2.0, 3.0])).all():
            raise ValueError("the discounts do not fit")
    except InputError:
        raise
    except UNREADABLE as error:
        raise InputError("the counts of this n-gram model are damaged; train it again", path) from error
    return trie, discount.astype(np.float64)


def _require_arrays(there: set[str], path: Path) -> None:
    expected = {*_ARRAYS, "discount"}
    for names, problem in ((expected - there, "lack the array"), (there - expected, "hold an unknown array,")):
        if names:
            raise InputError(f"the counts of this n-gram model {problem} {min(names)}; train it again", path)
