"""Kernels: random numbers by xoshiro256 (Blackman & Vigna 2021), and splitmix64 (Steele et al. 2014), which seeds it.

A state is (4,) uint64 and moves on. An output adds the upper bits of two words of it, so that no step overflows. Seeds
promise the same text for ever, so no number given here may change (`tests/generator/test_random_numbers.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from truesource.grammar._kernels.kernel import kernel

Array = Any  # numpy arrays; element types are in the docstrings

_MIX1, _MIX2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_S17, _S19, _S27, _S30, _S31, _S45 = (np.uint64(s) for s in (17, 19, 27, 30, 31, 45))
_S11, _S12 = np.uint64(11), np.uint64(12)
_TOP53, _TOP52 = np.int64((1 << 53) - 1), np.int64((1 << 52) - 1)


@kernel
def _move(state: Array) -> None:
    carried = state[1] << _S17
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= carried
    state[3] = (state[3] << _S45) | (state[3] >> _S19)


@kernel
def uniform(state: Array) -> float:
    """One float64 in [0, 1), a multiple of 2^-53."""
    mixed = (np.int64(state[0] >> _S11) + np.int64(state[3] >> _S11)) & _TOP53
    _move(state)
    return mixed * 2.0**-53


@kernel
def uniform_open(state: Array) -> float:
    """One float64 in (0, 1), neither end included, an odd multiple of 2^-53."""
    mixed = (np.int64(state[0] >> _S12) + np.int64(state[3] >> _S12)) & _TOP52
    _move(state)
    return (mixed + 0.5) * 2.0**-52


@kernel
def mixed_with(h: Any, value: Any) -> Any:
    """The next 64 bits of a hash ``h``, that take in ``value``; both uint64. One step of splitmix64."""
    h = (h ^ value) + _STEP
    h = (h ^ (h >> _S30)) * _MIX1
    h = (h ^ (h >> _S27)) * _MIX2
    return h ^ (h >> _S31)


@kernel
def seeded(seed: int, stream: int) -> Array:
    """A state (4,) uint64 from two numbers."""
    state = np.empty(4, dtype=np.uint64)
    at = np.uint64(seed) + np.uint64(stream) * _MIX1
    for i in range(4):
        state[i] = mixed_with(at, np.uint64(0))
        at += _STEP
    return state
