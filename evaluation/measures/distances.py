"""Distances between two distributions over the same atoms."""

from __future__ import annotations

import numpy as np

from truesource.grammar.support.arrays import FloatArray


def distances(of: FloatArray, others: FloatArray) -> dict[str, FloatArray]:
    """All distances between distributions, row by row.

    ``ks`` is the largest difference of the distribution functions (Kolmogorov-Smirnov), for atoms in ascending order;
    ``tv`` half the sum of absolute differences, the largest difference over all events; ``linf`` the largest over
    single atoms, which Meister & Cotterell (2021, equation 11) call the total variation distance.

    Args:
        of: (..., K) probabilities of the atoms, the same in every row.
        others: (..., K) or (K,).

    Returns:
        (...) each, in [0, 1].
    """
    gap = of - others
    size = np.abs(gap)
    return {
        "ks": np.abs(np.cumsum(gap, axis=-1)).max(axis=-1),
        "tv": 0.5 * size.sum(axis=-1),
        "linf": size.max(axis=-1),
    }
