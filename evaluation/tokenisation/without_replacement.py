"""Random paths without replacement, each with the probability that it is among them (Kool et al. 2019)."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation._kernels.paths import race
from truesource.evaluation.tokenisation._kernels.search import top_down
from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.evaluation.tokenisation.n_best import best_of
from truesource.evaluation.tokenisation.paths import DistinctPaths, Paths
from truesource.evaluation.tokenisation.proposal import Proposal, kernel_seed
from truesource.generator._kernels import seeded
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

Method = Literal["top-down", "race"]

MOST_REPEATS = 0.5  #: the race is run if no draw can repeat an earlier one with a larger probability
MOST_DRAWS = 10_000_000  #: in the mean, of a race that was asked for by name
_STREAMS = {"top-down": 2, "race": 3}


def sample_distinct(
    lattice: Lattice,
    k: int,
    *,
    b: float = 1.0,
    seed: int,
    avoid: NDArray[Any] | None = None,
    method: Method | None = None,
) -> DistinctPaths:
    """Draw ``k`` different paths: those with the largest log Q_b(T) + Gumbel noise.

    kappa is the (k+1)-th largest such sum, and q(T) = 1 - exp(-exp(log Q_b(T) - kappa)) the probability that a path is
    above it; the sum of f(T) / q(T) over the paths drawn is an unbiased estimate of the sum of f over all paths.

    Two methods give the same law. Both give every path T an exponential time of rate Q_b(T), of which the Gumbel sum is
    - log. ``race``: draw with replacement at the times of a Poisson process, skip what came before, stop at the
    (k+1)-th different path. ``top-down``: split the set of all paths, best first, drawing the time of the first path of
    each part given that of the whole. The race is fast if repeats are rare, and hopeless if a few paths hold nearly all
    probability. Which is run is settled by `choose` before anything is drawn, since to give up a slow race would bias
    the draws.

    Args:
        lattice: to draw from.
        k: how many, from 2 on (with 1 the variance of the estimate is infinite), unless there are no more paths.
        b: inverse temperature, from 0 on.
        seed: from 0 to 2^64 - 1.
        avoid: a path that takes no part: kappa and the Gumbel sums are of the others. Nothing is drawn and dropped.
        method: one of the two; None: that of `choose`.

    Returns:
        The paths, in the order of their Gumbel sums, with log Q_b, not renormalised if a path is avoided (kappa is in
        the same unit). If there are no more than ``k`` paths (or others than ``avoid``, perhaps none), all of them, by
        descending probability, with kappa -inf, log_inclusion 0 and method ``all``.

    Raises:
        InputError: ``k`` is below 2 and there are more than ``k`` paths, ``b`` is negative, the seed is out of range,
            ``avoid`` is no path, the method is unknown, or it is a race that may take more than `MOST_DRAWS` draws.
    """
    if k < 1:
        raise InputError(f"asking for {k} paths; there must be at least two, for the estimate to have a variance")
    if method not in (None, "top-down", "race"):
        raise InputError(f"unknown method {method!r}; it is top-down or race")
    proposal = Proposal(lattice, b, avoid)
    number = kernel_seed(seed)
    n_paths = proposal.count_up_to(k + 1)
    if n_paths <= k:
        paths = _but(best_of(proposal, n_paths + 1), proposal.avoid)
        return DistinctPaths(paths, np.zeros(len(paths)), -math.inf, "all")
    if k < 2:
        raise InputError("one path without replacement gives an estimate of infinite variance; ask for two or more")
    if method == "race":
        _check_race(proposal, k)
    chosen = method or choose(proposal, k)
    paths, kappa = (_race if chosen == "race" else _top_down)(proposal, k, number)
    return DistinctPaths(paths, log_inclusion(paths.log_q, kappa), kappa, chosen)


def choose(proposal: Proposal, k: int) -> Method:
    """``race`` if no draw of it can repeat an earlier one with a probability above `MOST_REPEATS`.

    ``k`` different paths hold at most sqrt(k * sum of Q^2) of the probability, by the inequality of Cauchy and Schwarz.
    So a race takes at most (k + 1) / (1 - `MOST_REPEATS`) draws in the mean.
    """
    collision = proposal.collision
    if proposal.avoid is not None:
        best = math.exp(float(proposal.score[proposal.avoid].sum()) - proposal.log_z)
        rounding = 1e-14
        collision = max(collision - best * best, 0.0) + rounding
        collision *= math.exp(-2.0 * max(proposal.log_rest, -300.0))
    return "race" if k * collision <= MOST_REPEATS**2 else "top-down"


def _check_race(proposal: Proposal, k: int) -> None:
    """Whether a race that was asked for will end: at worst the ``k`` best paths come again and again."""
    best = _but(best_of(proposal, k + int(proposal.avoid is not None)), proposal.avoid)
    others = 1.0 - math.fsum(np.exp(best.log_q[:k] - proposal.log_rest))
    if k + 1 > MOST_DRAWS * others:
        raise InputError(
            f"a race for {k} paths may take more than {MOST_DRAWS:,} draws, since {k} paths hold nearly all"
            " probability; choose top-down"
        )


def log_inclusion(log_q: FloatArray, kappa: float) -> FloatArray:
    """Log probability that each path is above ``kappa``, log(1 - exp(-exp(log_q - kappa))), nats."""
    x = log_q - kappa
    y = np.exp(np.minimum(x, 40.0))
    near = np.log(-np.expm1(-np.maximum(y, 1e-5)))
    found: FloatArray = np.where(x < -10.0, x - y / 2.0 + y * y / 24.0, near)
    return found


def _race(proposal: Proposal, k: int, seed: Any) -> tuple[Paths, float]:
    lattice, guard = proposal.lattice, proposal.guard
    arcs, bounds, totals, time = race(
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
    arcs, bounds, totals, kappa = top_down(
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
    kept = [(arcs, q) for arcs, q in zip(paths.each(), paths.log_q, strict=True) if not np.array_equal(arcs, avoid)]
    return Paths.of([arcs for arcs, _ in kept], np.array([q for _, q in kept]))
