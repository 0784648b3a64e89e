"""The most probable paths of a lattice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truesource.evaluation.tokenisation._kernels import search
from truesource.evaluation.tokenisation._kernels.paths import count_up_to
from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.evaluation.tokenisation.paths import Paths
from truesource.evaluation.tokenisation.proposal import Proposal
from truesource.grammar.support.errors import InputError


def n_best(lattice: Lattice, k: int) -> Paths:
    """The ``k`` paths of the largest sums of scores, exactly, by descending sum; all if there are fewer.

    Search from the end, best first on the sum so far plus the exact best sum of the rest. Ties are broken by the
    lattice alone, and the first path is `truesource.evaluation.tokenisation.marginal.best_path`.

    Returns:
        The paths with log Q_1, nats.

    Raises:
        InputError: ``k`` is below 1.
    """
    if k < 1:
        raise InputError(f"asking for {k} paths; there must be at least one")
    return best_of(Proposal(lattice), k)


def canonical_first(canonical: NDArray[Any], paths: Sequence[NDArray[Any]], k: int) -> list[NDArray[Any]]:
    """At most ``k`` paths: the tokeniser's own, then the others in their order.

    So the first k of them are the k best, or, where the canonical tokenisation is not one of these, it in place of the
    last.
    """
    return [canonical, *(path for path in paths if not np.array_equal(path, canonical))][:k]


def best_of(proposal: Proposal, k: int) -> Paths:
    """The ``k`` most probable paths under a proposal, that avoided too, with log Q_b; all if there are fewer."""
    lattice = proposal.lattice
    k = int(count_up_to(lattice.first, lattice.source, k))
    arcs, bounds, sums = search.n_best(lattice.first, lattice.source, proposal.score, k)
    return Paths(arcs, bounds, sums - proposal.log_z)
