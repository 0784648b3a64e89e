"""The median of weighted values, by its definition."""

from __future__ import annotations

import math


def slow_median(pairs: list[tuple[float, float]]) -> float:
    """Of (value, weight): where the sorted weights reach half, and where they exceed it."""
    pairs = sorted(pairs)
    half, reached, ends = math.fsum(w for _, w in pairs) / 2, 0.0, []
    for value, weight in pairs:
        reached += weight
        if not ends and reached >= half - 1e-12:
            ends.append(value)
        if ends and reached > half + 1e-12:
            return (ends[0] + value) / 2
    raise AssertionError
