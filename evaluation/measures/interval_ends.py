"""Ends of intervals of all kinds."""

from __future__ import annotations


def enclosing(value: float, low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """Move the ends of an interval to the value if they exclude it.

    Ends may miss the value by a rounding error, for example if all sentences agree.
    """
    return (value if low is not None and low > value else low, value if high is not None and high < value else high)
