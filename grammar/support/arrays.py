"""Types of arrays, and independent streams of random numbers from one seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.support.call_arguments import seed_number

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


def random_state(seed: int, *stream: int) -> NDArray[np.uint64]:
    """Return the state (4,) of an independent stream of random numbers, the same on every machine.

    Raises:
        InputError: the seed is not a whole number, or negative.
    """
    seed = seed_number(seed)
    return np.random.SeedSequence(seed, spawn_key=stream).generate_state(4, np.uint64).astype(np.uint64)
