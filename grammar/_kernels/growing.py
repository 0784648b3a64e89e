"""Kernels: arrays that grow."""

from __future__ import annotations

from typing import Any

import numpy as np

from truesource.grammar._kernels.kernel import kernel

Array = Any  # numpy arrays of any type


@kernel
def copy(target: Array, at: int, values: Array, low: int, high: int) -> None:
    """``values[low:high]`` to ``target`` from ``at`` on; a loop, since slices take long to compile."""
    for i in range(high - low):
        target[at + i] = values[low + i]


@kernel
def room(array: Array, needed: int) -> Array:
    """``array``, or a copy at least twice as long when ``needed`` entries do not fit."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), dtype=array.dtype)
    copy(larger, 0, array, 0, len(array))
    return larger
