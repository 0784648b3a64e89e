"""Some segmentations of one text."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray


@dataclass(frozen=True)
class Paths:
    """k paths through one lattice, arcs left to right, path after path."""

    arcs: Int32Array  #: (T,) arc numbers
    bounds: IntArray  #: (k+1,) path i is arcs[bounds[i]:bounds[i+1]]
    log_q: FloatArray  #: (k,) log probability of each under what it was drawn or ranked by, nats

    @classmethod
    def of(cls, paths: Sequence[NDArray[np.integer]], log_q: FloatArray) -> Paths:
        """From the arcs of each."""
        bounds = np.concatenate([[0], np.cumsum([len(path) for path in paths], dtype=np.int64)])
        arcs = np.concatenate([np.empty(0, dtype=np.int32), *paths]).astype(np.int32)
        return cls(arcs, bounds, log_q)

    def __len__(self) -> int:
        return len(self.log_q)

    def each(self) -> list[Int32Array]:
        """The arcs of every path."""
        return [self.arcs[a:b] for a, b in itertools.pairwise(self.bounds.tolist())]


@dataclass(frozen=True)
class DistinctPaths:
    """Paths drawn without replacement, with what weights them (Kool et al. 2019)."""

    paths: Paths  #: ``log_q`` is log Q_b of each
    log_inclusion: NDArray[
        np.float64
    ]  #: (k,) log q_kappa: probability that each exceeds the threshold; 0 if all are here
    kappa: float  #: the (k+1)-th largest perturbed log probability; -inf if there are no more paths
    method: str  #: ``top-down`` or ``race``, or ``all``
