"""Sums over all paths of a long text from its word types: each is segmented once, however often it stands there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.tokenisation._kernels import sums as kernels
from truesource.evaluation.tokenisation.builder import LatticeBuilder
from truesource.evaluation.tokenisation.marginal import checked, exact_count, finite
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError


@dataclass(frozen=True, kw_only=True)
class TypeSums:
    """What `truesource.evaluation.tokenisation.marginal` gives, of every word type and of all tokens together."""

    words: tuple[str, ...]  #: (U,) word types, in the alphabet of the inventory
    counts: IntArray  #: (U,) tokens of each
    log_partitions: FloatArray  #: (U,) log Z_b of each, nats
    entropies: FloatArray  #: (U,) nats
    log_collisions: FloatArray  #: (U,) log of the sum of Q_b^2, nats
    log_paths: FloatArray  #: (U,) log of the number of paths
    paths: tuple[int, ...]  #: (U,) the number of paths

    @property
    def log_partition(self) -> float:
        """Log Z_b of the whole text, nats."""
        return self._total(self.log_partitions)

    @property
    def entropy(self) -> float:
        """Of Q_b of the whole text, nats."""
        return self._total(self.entropies)

    @property
    def log_collision(self) -> float:
        """Log of the sum of Q_b^2 over the paths of the whole text, nats."""
        return self._total(self.log_collisions)

    @property
    def log_n_paths(self) -> float:
        """Log of the number of paths of the whole text."""
        return self._total(self.log_paths)

    def _total(self, values: FloatArray) -> float:
        return math.fsum((self.counts * values).tolist())


def sums_by_type(builder: LatticeBuilder, text: str | Mapping[str, int], b: float = 1.0) -> TypeSums:
    """Sum over the paths of every word type.

    Args:
        builder: whose lattices factorise over words.
        text: a spelling, or its words (as `LatticeBuilder.words` gives them) with how often each stands there.
        b: inverse temperature.

    Raises:
        InputError: the lattice does not factorise, a word is no joining of pieces, or b is refused.
    """
    if not builder.factorises:
        raise InputError(
            "some piece joins white space to what stands before it, so words cannot be segmented one by one;"
            " use the lattice of the whole text"
        )
    return sums_of_stretches(builder, Counter(builder.words(text)) if isinstance(text, str) else text, b)


def sums_of_stretches(builder: LatticeBuilder, counts: Mapping[str, int], b: float = 1.0) -> TypeSums:
    """Sum over the paths of every stretch of some texts (words, or whole texts), each with how often it stands there.

    Raises:
        InputError: a stretch is no joining of pieces, or b is refused.
    """
    words = tuple(counts)
    lattice, bounds = builder.join(words)
    found, number = kernels.sums(lattice.first, lattice.source, lattice.score, checked(b), bounds)
    finite(float(found[:3].sum()), b)
    paths = number.tolist()
    for k in np.flatnonzero(number < 0).tolist():
        paths[k] = exact_count(lattice, int(bounds[k]), int(bounds[k + 1]))
    return TypeSums(
        words=words,
        counts=np.fromiter(counts.values(), dtype=np.int64, count=len(words)),
        log_partitions=found[0],
        entropies=found[1],
        log_collisions=np.minimum(found[2] - 2.0 * found[0], 0.0),
        log_paths=found[3],
        paths=tuple(paths),
    )
