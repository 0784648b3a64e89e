"""The distribution from which paths are drawn: Q_b(T) = exp(b * sum of scores) / Z_b, perhaps but for one path."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation._kernels import paths as kernels
from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.evaluation.tokenisation.marginal import checked, log_partition
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

_NO_PATH = np.empty(0, dtype=np.int64)
_NOTHING = np.empty(0)


class _Guard(NamedTuple):
    avoided: IntArray
    guarded: FloatArray
    log_rest: FloatArray


class Proposal:
    """Q_b over the paths of one lattice, with b inside the forward pass (Cao & Rimell 2021, section 3).

    Args:
        lattice: whose paths.
        b: inverse temperature, from 0 (all paths alike) on; large values leave the best path only.
        avoid: a path, as arc numbers, that is left out: Q_b given that the path is another.

    Raises:
        InputError: ``b`` is negative or not finite, or ``avoid`` is no path of the lattice.
    """

    def __init__(self, lattice: Lattice, b: float = 1.0, avoid: NDArray[Any] | None = None) -> None:
        self.lattice = lattice
        self.b = checked(b)
        self.avoid = None if avoid is None else _path(lattice, avoid)
        #: (A,) b times the score of each arc, nats
        self.score = lattice.score if self.b == 1.0 else lattice.score * self.b
        #: (n+1,) log of the sum of exp(b * score) over the paths from 0 to each position, nats; (A,) see the kernels
        self.log_forward, self.running = kernels.forward(lattice.first, lattice.source, self.score)
        self.log_z = float(self.log_forward[-1])

    @cached_property
    def guard(self) -> _Guard:
        """What it takes to avoid the path, see `guard`; empty arrays where none is avoided."""
        if self.avoid is None:
            return _Guard(_NO_PATH, _NOTHING, _NOTHING)
        lattice = self.lattice
        return _Guard(*kernels.guard(lattice.first, lattice.source, self.score, self.log_forward, self.avoid))

    @property
    def log_rest(self) -> float:
        """Log Q_b of all paths but the one avoided, nats; 0 if none is. Summed over them, never 1 - Q_b(avoid)."""
        return 0.0 if self.avoid is None else float(self.guard.log_rest[-1])

    @cached_property
    def collision(self) -> float:
        """Sum of Q_b^2 over all paths, one that is avoided too: the probability that two drawn paths are the same."""
        return math.exp(min(log_partition(self.lattice, 2.0 * self.b) - 2.0 * self.log_z, 0.0))

    def count_up_to(self, limit: int) -> int:
        """Number of paths, or ``limit`` if there are more; one that is avoided does not count."""
        avoided = int(self.avoid is not None)
        return int(kernels.count_up_to(self.lattice.first, self.lattice.source, limit + avoided)) - avoided


def _path(lattice: Lattice, path: NDArray[Any]) -> IntArray:
    arcs = np.asarray(path, dtype=np.int64)
    if len(arcs) and arcs.min() >= 0 and arcs.max() < len(lattice.source):
        ends = np.searchsorted(lattice.first, arcs, side="right") - 1
        starts = lattice.source[arcs]
        if starts[0] == 0 and ends[-1] == lattice.n and np.array_equal(starts[1:], ends[:-1]):
            return arcs
    raise InputError("what is to be avoided is no path of the lattice")


def kernel_seed(seed: int) -> np.uint64:
    """A seed as kernels take it.

    Raises:
        InputError: it is no whole number from 0 to 2^64 - 1.
    """
    if type(seed) is not int or not 0 <= seed < 1 << 64:
        raise InputError(f"a seed is a whole number from 0 to 2^64 - 1, got {seed!r}")
    return np.uint64(seed)
