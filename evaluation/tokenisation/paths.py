"""Segmentations of one text: the most probable ones, and random ones sampled with and without replacement."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation._kernels import paths as kernels
from truesource.evaluation.tokenisation._kernels import search
from truesource.evaluation.tokenisation.lattice import Lattice, checked, log_partition
from truesource.generator._kernels import seeded
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

_NO_PATH = np.empty(0, dtype=np.int64)
_NOTHING = np.empty(0)
_STREAM = 1
Method = Literal["top-down", "race"]
MOST_REPEATS = 0.5  #: maximum probability that a draw of a race repeats an earlier one
_STREAMS = {"top-down": 2, "race": 3}


@dataclass(frozen=True)
class Paths:
    """A list of k paths through one lattice, arcs left to right, path after path."""

    arcs: Int32Array  #: (T,) arc numbers
    bounds: IntArray  #: (k+1,) path i is arcs[bounds[i]:bounds[i+1]]
    log_q: FloatArray  #: (k,) log probability under the distribution that it was sampled or ranked by, nats

    @classmethod
    def of(cls, paths: Sequence[NDArray[np.integer]], log_q: FloatArray) -> Paths:
        """Build from the arcs of each path."""
        bounds = np.concatenate([[0], np.cumsum([len(path) for path in paths], dtype=np.int64)])
        arcs = np.concatenate([np.empty(0, dtype=np.int32), *paths]).astype(np.int32)
        return cls(arcs, bounds, log_q)

    def __len__(self) -> int:
        return len(self.log_q)

    def each(self) -> list[Int32Array]:
        """Return the arcs of every path."""
        return [self.arcs[a:b] for a, b in itertools.pairwise(self.bounds.tolist())]


@dataclass(frozen=True)
class DistinctPaths:
    """Paths sampled without replacement, with their weights (Kool et al. 2019)."""

    paths: Paths  #: their ``log_q`` is log Q_b
    log_inclusion: NDArray[
        np.float64
    ]  #: (k,) log q_kappa: probability that each exceeds the threshold; 0 if all paths are included
    kappa: float  #: the (k+1)-th largest perturbed log probability; -inf if there are no more paths
    method: str  #: ``top-down`` or ``race``, or ``all``


class _Guard(NamedTuple):
    avoided: IntArray
    guarded: FloatArray
    log_rest: FloatArray


class Proposal:
    """The distribution Q_b over the paths of one lattice, with b in the forward pass (Cao & Rimell 2021, section 3).

    Args:
        lattice: the lattice.
        b: inverse temperature, at least 0 (uniform over paths); large values leave only the best path.
        avoid: a path to exclude, as arc numbers: Q_b is conditional on the other paths.

    Raises:
        InputError: ``b`` is negative or not finite, or ``avoid`` is not a path of the lattice.
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
        """Arrays with which kernels avoid the path, see their `guard`; empty if no path is avoided."""
        if self.avoid is None:
            return _Guard(_NO_PATH, _NOTHING, _NOTHING)
        lattice = self.lattice
        return _Guard(*kernels.guard(lattice.first, lattice.source, self.score, self.log_forward, self.avoid))

    @property
    def log_rest(self) -> float:
        """Return log Q_b of all paths except the avoided one, nats, or 0; summed directly, never as 1 - Q_b(avoid)."""
        return 0.0 if self.avoid is None else float(self.guard.log_rest[-1])

    @cached_property
    def collision(self) -> float:
        """Compute the sum of Q_b^2 over all paths, avoided or not: the probability that two samples are equal."""
        return math.exp(min(log_partition(self.lattice, 2.0 * self.b) - 2.0 * self.log_z, 0.0))

    def count_up_to(self, limit: int) -> int:
        """Count paths up to ``limit``, without an avoided path."""
        avoided = int(self.avoid is not None)
        return int(kernels.count_up_to(self.lattice.first, self.lattice.source, limit + avoided)) - avoided


def _path(lattice: Lattice, path: NDArray[Any]) -> IntArray:
    arcs = np.asarray(path, dtype=np.int64)
    if len(arcs) and arcs.min() >= 0 and arcs.max() < len(lattice.source):
        ends = np.searchsorted(lattice.first, arcs, side="right") - 1
        starts = lattice.source[arcs]
        if starts[0] == 0 and ends[-1] == lattice.n and np.array_equal(starts[1:], ends[:-1]):
            return arcs
    raise InputError("the path to avoid is not a path of the lattice")


def kernel_seed(seed: int) -> np.uint64:
    """Convert a seed to the type of kernels.

    Raises:
        InputError: it is not a whole number from 0 to 2^64 - 1.
    """
    if type(seed) is not int or not 0 <= seed < 1 << 64:
        raise InputError(f"a seed is a whole number from 0 to 2^64 - 1, got {seed!r}")
    return np.uint64(seed)


def n_best(lattice: Lattice, k: int) -> Paths:
    """Find the ``k`` paths with the largest sums of scores, exactly, by descending sum; all if there are fewer.

    The search starts at the end, best first by current sum plus exact best sum of the rest. Ties are broken by the
    lattice only, and the first path is `truesource.evaluation.tokenisation.lattice.best_path`.

    Returns:
        The paths with log Q_1, nats.

    Raises:
        InputError: ``k`` is below 1.
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    return best_of(Proposal(lattice), k)


def canonical_first(canonical: NDArray[Any], paths: Sequence[NDArray[Any]], k: int) -> list[NDArray[Any]]:
    """Return at most ``k`` paths: the canonical tokenisation, then the others in their order.

    They are the k best paths; if the canonical tokenisation is not one of these, it replaces the
    last.
    """
    return [canonical, *(path for path in paths if not np.array_equal(path, canonical))][:k]


def best_of(proposal: Proposal, k: int) -> Paths:
    """Find the ``k`` most probable paths under a proposal, avoided or not, with log Q_b; all if there are fewer."""
    lattice = proposal.lattice
    k = int(kernels.count_up_to(lattice.first, lattice.source, k))
    arcs, bounds, sums = search.n_best(lattice.first, lattice.source, proposal.score, k)
    return Paths(arcs, bounds, sums - proposal.log_z)


def sample(lattice: Lattice, k: int, *, b: float = 1.0, seed: int, avoid: NDArray[Any] | None = None) -> Paths:
    """Sample ``k`` independent paths from Q_b(T) = exp(b * sum of scores) / Z_b.

    Backwards from the end, the arc into a position is sampled in proportion to the weight of all paths through
    it (Scott 2002; Cao & Rimell 2021). The temperature is in the forward sums too, so that `log_q` is exactly Q_b.

    Args:
        lattice: lattice to sample from.
        k: number of paths, at least 1.
        b: inverse temperature, at least 0; 0 is uniform over paths.
        seed: from 0 to 2^64 - 1; the same seed gives the same paths.
        avoid: a path to exclude: the others keep their proportions, and no sample is rejected. While a sample has
            followed it from the end, the arc that continues it counts only with the probability that the rest
            leaves it.

    Returns:
        The paths in order of sampling, with log Q_b, or log Q_b(T) / (1 - Q_b(avoid)). No paths at all if ``avoid`` is
        the only one.

    Raises:
        InputError: ``k`` is below 1, ``b`` is negative, the seed is out of range, or ``avoid`` is not a path.
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    if avoid is None:
        score = lattice.score if checked(b) == 1.0 else lattice.score * b
        return Paths(*kernels.draw_any(lattice.first, lattice.source, score, k, kernel_seed(seed), _STREAM))
    proposal = Proposal(lattice, b, avoid)
    if proposal.count_up_to(1) == 0:
        return Paths.of([], np.empty(0))
    guard = proposal.guard
    arcs, bounds, totals = kernels.draw(
        lattice.first,
        lattice.source,
        proposal.score,
        proposal.running,
        guard.guarded,
        guard.avoided,
        k,
        kernel_seed(seed),
        _STREAM,
    )
    return Paths(arcs, bounds, totals - (proposal.log_z + proposal.log_rest))


def sample_distinct(
    lattice: Lattice,
    k: int,
    *,
    b: float = 1.0,
    seed: int,
    avoid: NDArray[Any] | None = None,
    method: Method | None = None,
) -> DistinctPaths:
    """Sample ``k`` different paths, which have the largest log Q_b(T) + Gumbel noise.

    kappa is the (k+1)-th largest such sum, and q(T) = 1 - exp(-exp(log Q_b(T) - kappa)) the probability that a path is
    above it; the sum of f(T) / q(T) over the sampled paths is an unbiased estimate of the sum of f over all paths.

    Two methods have the same distribution. Both give every path T an exponential time of rate Q_b(T), of which the
    Gumbel sum is - log. ``race``: sample with replacement at the times of a Poisson process, skip repeated paths, stop
    at the (k+1)-th different path. ``top-down``: split the set of all paths, best first, and sample the time of the
    first path of each part given the first time of the whole. The race is fast if repeats are rare, and very slow if
    few paths hold nearly all probability. `choose` decides before sampling, since stopping a slow race would bias
    the samples.

    Args:
        lattice: lattice to sample from.
        k: number of paths, at least 2 (with 1, the estimate has infinite variance), unless there are no more paths.
        b: inverse temperature, at least 0.
        seed: from 0 to 2^64 - 1.
        avoid: a path to exclude: kappa and the Gumbel sums are of the others; no sample is rejected.
        method: one of the two methods; None: `choose` decides.

    Returns:
        The paths, in the order of their Gumbel sums, with log Q_b, not renormalised if a path is avoided (kappa is in
        the same unit). If there are no more than ``k`` paths (or others than ``avoid``, perhaps none), all paths, by
        descending probability, with kappa -inf, log_inclusion 0 and method ``all``.

    Raises:
        InputError: ``k`` is below 2 and there are more than ``k`` paths, ``b`` is negative, the seed is out of range,
            or ``avoid`` is not a path.
    """
    if k < 1:
        raise InputError(f"k must be at least 2, so that the estimate has a variance, got {k}")
    proposal = Proposal(lattice, b, avoid)
    number = kernel_seed(seed)
    n_paths = proposal.count_up_to(k + 1)
    if n_paths <= k:
        paths = _but(best_of(proposal, n_paths + 1), proposal.avoid)
        return DistinctPaths(paths, np.zeros(len(paths)), -math.inf, "all")
    if k < 2:
        raise InputError("one path without replacement gives an estimate of infinite variance; ask for two or more")
    chosen = method or choose(proposal, k)
    paths, kappa = (_race if chosen == "race" else _top_down)(proposal, k, number)
    return DistinctPaths(paths, log_inclusion(paths.log_q, kappa), kappa, chosen)


def choose(proposal: Proposal, k: int) -> Method:
    """Choose ``race`` unless one of its draws may repeat an earlier one with a probability above `MOST_REPEATS`.

    ``k`` different paths hold at most sqrt(k * sum of Q^2) of the probability, by the inequality of Cauchy and Schwarz.
    So a race takes at most (k + 1) / (1 - `MOST_REPEATS`) draws on average.
    """
    collision = proposal.collision
    if proposal.avoid is not None:
        best = math.exp(float(proposal.score[proposal.avoid].sum()) - proposal.log_z)
        rounding = 1e-14
        collision = max(collision - best * best, 0.0) + rounding
        collision *= math.exp(-2.0 * max(proposal.log_rest, -300.0))
    return "race" if k * collision <= MOST_REPEATS**2 else "top-down"


def log_inclusion(log_q: FloatArray, kappa: float) -> FloatArray:
    """Compute the log probability that each path is above ``kappa``, log(1 - exp(-exp(log_q - kappa))), nats."""
    x = log_q - kappa
    y = np.exp(np.minimum(x, 40.0))
    near = np.log(-np.expm1(-np.maximum(y, 1e-5)))
    log_q_kappa: FloatArray = np.where(x < -10.0, x - y / 2.0 + y * y / 24.0, near)
    return log_q_kappa


def _race(proposal: Proposal, k: int, seed: Any) -> tuple[Paths, float]:
    lattice, guard = proposal.lattice, proposal.guard
    arcs, bounds, totals, time = kernels.race(
        lattice.first,
        lattice.source,
        proposal.score,
        proposal.running,
        guard.guarded,
        guard.avoided,
        k,
        seed,
        _STREAMS["race"],
    )
    return Paths(arcs, bounds, totals - proposal.log_z), proposal.log_rest - math.log(time)


def _top_down(proposal: Proposal, k: int, seed: Any) -> tuple[Paths, float]:
    lattice, guard = proposal.lattice, proposal.guard
    arcs, bounds, totals, kappa = search.top_down(
        lattice.first,
        lattice.source,
        proposal.score,
        proposal.log_forward,
        proposal.running,
        guard.guarded,
        guard.avoided,
        guard.log_rest,
        k,
        seeded(seed, _STREAMS["top-down"]),
    )
    return Paths(arcs, bounds, totals - proposal.log_z), float(kappa)


def _but(paths: Paths, avoid: NDArray[Any] | None) -> Paths:
    if avoid is None:
        return paths
    others = [(arcs, q) for arcs, q in zip(paths.each(), paths.log_q, strict=True) if not np.array_equal(arcs, avoid)]
    return Paths.of([arcs for arcs, _ in others], np.array([q for _, q in others]))
