"""Random paths with replacement: forward filtering, backward sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation._kernels import paths as kernels
from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.evaluation.tokenisation.marginal import checked
from truesource.evaluation.tokenisation.paths import Paths
from truesource.evaluation.tokenisation.proposal import Proposal, kernel_seed
from truesource.grammar.support.errors import InputError

_STREAM = 1


def sample(lattice: Lattice, k: int, *, b: float = 1.0, seed: int, avoid: NDArray[Any] | None = None) -> Paths:
    """Draw ``k`` independent paths from Q_b(T) = exp(b * sum of scores) / Z_b.

    Backwards from the end, an arc is drawn among those that end at a position by the weight of all that leads through
    it (Scott 2002; Cao & Rimell 2021). The temperature is in the forward sums too, so that `log_q` is exactly Q_b.

    Args:
        lattice: to draw from.
        k: how many, from 1 on.
        b: inverse temperature, from 0 on; 0 makes all paths alike.
        seed: from 0 to 2^64 - 1; the same seed gives the same paths.
        avoid: a path never to draw: the others keep their proportions, and no draw is rejected. While a draw has
            followed it from the end, the arc that goes on along it counts only with the probability that the rest
            leaves it.

    Returns:
        The paths in the order drawn, with log Q_b, or log Q_b(T) / (1 - Q_b(avoid)). No paths at all if ``avoid`` is
        the only one.

    Raises:
        InputError: ``k`` is below 1, ``b`` is negative, the seed is out of range, or ``avoid`` is no path.
    """
    if k < 1:
        raise InputError(f"asking for {k} paths; there must be at least one")
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
