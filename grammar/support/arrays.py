"""Types of arrays, and independent streams of random numbers from one seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.support.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


def random_state(seed: int, *stream: int) -> NDArray[np.uint64]:
    """Return the state (4,) of an independent stream of random numbers, the same on every machine.

    Raises:
        InputError: the seed is not a non-negative `int`.
    """
    if type(seed) is not int or seed < 0:
        raise InputError(f"a seed must be an integer >= 0, got {seed!r}")
    return np.random.SeedSequence(seed, spawn_key=stream).generate_state(4, np.uint64).astype(np.uint64)
