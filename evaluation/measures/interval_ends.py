"""Ends of intervals, whatever has made them."""

from __future__ import annotations


def enclosing(value: float, low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """Ends of an interval, moved to the value where they leave it out.

    Ends that are computed in other steps than the value may miss it by a rounding error, as where all sentences agree.
    """
    return (value if low is not None and low > value else low, value if high is not None and high < value else high)
