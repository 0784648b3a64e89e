"""Types of arrays and of their numbers, and independent streams of random numbers from one seed."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.support.call_arguments import seed_number
from truesource.grammar.support.errors import InputError

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


def float_type(value: Any) -> np.dtype[np.floating[Any]]:
    """Return the type of the numbers in charts.

    Raises:
        InputError: the type is neither float64 nor float32.
    """
    try:
        name = np.dtype(value).name
    except TypeError:  # no type of numpy
        name = reprlib.repr(value)
    if name not in ("float64", "float32"):
        raise InputError(f"charts are float64 or float32, not {name}; choose one of them")
    return np.dtype(np.float64 if name == "float64" else np.float32)
