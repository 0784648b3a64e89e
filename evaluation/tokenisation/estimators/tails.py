"""Segmentations that are not on a list, drawn with known probability.

Adding one of them with weight 1/q to a list of the best segmentations makes the weighted sum an unbiased estimate of
the sum over all segmentations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.evaluation.tokenisation.marginal import forward
from truesource.grammar.support.arrays import FloatArray, IntArray

LEAST_MASS = 1e-6  #: of unlisted segmentations; masses are found by subtraction, which leaves some ten digits of this
ROUNDING = 1e-15  #: what subtraction may leave of a mass, as a share of all that leads to a position


class _Fork(NamedTuple):
    """What can be drawn at one position, given what was drawn right of it."""

    arcs: IntArray  #: (D,)
    cumulative: FloatArray  #: (D,) the last is 1
    log_q: FloatArray  #: (D,)


class SampledSegmentation(NamedTuple):
    """One segmentation."""

    tokens: IntArray  #: the model's numbers of its pieces
    size: int  #: characters that it covers
    log_q: float  #: log probability of being drawn, nats


class Tail:
    """Draws a segmentation in proportion to Q_b among those that are not listed.

    Backward sampling in which the mass of the listed segmentations that agree with what was drawn so far is taken away
    from each arc (with one listed segmentation this is the flagged backward pass). Where unlisted segmentations have
    hardly any mass, b is halved until they have. Exact counts of segmentations say which arcs are left, so every
    unlisted segmentation can be drawn.
    """

    def __init__(
        self, lattice: Lattice, listed: Sequence[NDArray[np.integer]], b: float, ids: IntArray, stop: IntArray
    ) -> None:
        """Prepare to draw.

        Args:
            lattice: of the stretch of text.
            listed: arcs of the segmentations that are never drawn; not all of the lattice's.
            b: inverse temperature.
            ids: (A,) the model's number of each arc's piece.
            stop: (A,) characters from the beginning of the stretch to where each arc's piece ends.
        """
        self._lattice, self._ids, self._stop = lattice, ids, stop
        self._listed = [cut.tolist() for cut in listed]
        self._counts = _path_counts(lattice)
        self._b = b
        self._prepare()
        self.mass = math.exp(self._log_unlisted())  #: share of Q_b that is not listed, 0 to 1
        while self._log_unlisted() < math.log(LEAST_MASS):
            self._b /= 2.0
            self._prepare()
        self._forks: dict[tuple[int, int, tuple[int, ...]], _Fork] = {}

    def _prepare(self) -> None:
        self._forward = forward(self._lattice, self._b)
        scores = self._b * self._lattice.score
        self._sums = [np.cumsum(scores[cut]) for cut in self._listed]

    def _log_unlisted(self) -> float:
        """Log of the share of unlisted segmentations."""
        left = -math.expm1(float(logsumexp([sums[-1] for sums in self._sums])) - self._forward[-1])
        return math.log(left) if left > 0.0 else -math.inf

    def draw(self, rng: np.random.Generator) -> SampledSegmentation:
        """One segmentation."""
        at, depth, log_q = self._lattice.n, 0, 0.0
        agreeing = tuple(range(len(self._listed)))  # listed segmentations with all of the arcs drawn so far
        arcs: list[int] = []
        while at > 0:
            fork = self._fork(at, depth, agreeing)
            choice = int(np.searchsorted(fork.cumulative, rng.random(), side="right"))
            arc = int(fork.arcs[choice])
            log_q += float(fork.log_q[choice])
            arcs.append(arc)
            agreeing = self._still(agreeing, depth, arc)
            at, depth = int(self._lattice.source[arc]), depth + 1
        return SampledSegmentation(self._ids[arcs[::-1]], int(self._stop[arcs[0]]), log_q)

    def _still(self, agreeing: tuple[int, ...], depth: int, arc: int) -> tuple[int, ...]:
        return tuple(i for i in agreeing if depth < len(self._listed[i]) and self._listed[i][-1 - depth] == arc)

    def _fork(self, at: int, depth: int, agreeing: tuple[int, ...]) -> _Fork:
        key = (at, depth, agreeing)
        if key not in self._forks:
            low, high = self._lattice.first[at], self._lattice.first[at + 1]
            arcs = np.arange(low, high)
            top = self._forward[at]
            mass = np.exp(self._forward[self._lattice.source[arcs]] + self._b * self._lattice.score[arcs] - top)
            left = [self._counts[source] for source in self._lattice.source[arcs].tolist()]
            for i in agreeing:
                arc = self._listed[i][-1 - depth] - low
                mass[arc] -= math.exp(self._sums[i][-1 - depth] - top)
                left[arc] -= 1
            some = np.array([n > 0 for n in left])
            arcs, mass = arcs[some], np.maximum(mass[some], ROUNDING)
            mass /= mass.sum()
            cumulative = np.cumsum(mass)
            self._forks[key] = _Fork(arcs, cumulative / cumulative[-1], np.log(mass))
        return self._forks[key]


def _path_counts(lattice: Lattice) -> list[int]:
    """How many paths lead to each position, of any size."""
    counts = [1]
    sources = lattice.source.tolist()
    for at in range(1, lattice.n + 1):
        counts.append(sum(counts[source] for source in sources[lattice.first[at] : lattice.first[at + 1]]))
    return counts
