"""Names and sentences as Arrow columns, without Python objects on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    import pyarrow

COLUMN_LIMIT = 2**31 - 1  #: bytes in one string column of one shard


def packed(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], IntArray]:
    """Names as UTF-8, one after the other, and their bounds, (n + 1,)."""
    encoded = [name.encode() for name in names]
    bounds = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in encoded], out=bounds[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), bounds


def strings(data: NDArray[np.uint8], bounds: IntArray) -> pyarrow.Array:
    """UTF-8 bytes, cut at ``bounds`` (n + 1,), as an array of n strings."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.string(), len(bounds) - 1, [None, offsets(bounds).buffers()[1], pa.py_buffer(data)])


def offsets(bounds: IntArray) -> pyarrow.Array:
    """Bounds (n + 1,) as Arrow takes them.

    Raises:
        InputError: they lie beyond what one column holds.
    """
    import pyarrow as pa

    if bounds[-1] > COLUMN_LIMIT:
        raise InputError("a shard's sentences take more than 2 GB; use a smaller shard size")
    return pa.array(bounds.astype(np.int32))
