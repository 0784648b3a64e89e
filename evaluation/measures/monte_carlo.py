"""Monte Carlo p-values, and tables of them.

A p-value counts the observed statistic among the draws, so it is never 0 and a test at level a rejects a true null
hypothesis with probability at most a (Phipson & Smyth 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from truesource.grammar.support.arrays import FloatArray

Tail = Literal["upper", "both", "paper"]
NEAR = 1e-12  #: relative; draws that differ less from the statistic are ties, which count as at least as far


@dataclass(frozen=True)
class ChanceTest:
    """A statistic and its null distribution."""

    value: float
    p: float  #: in (0, 1]
    null_mean: float  #: of the draws
    null_low: float  #: 2.5% of the draws are below
    null_high: float  #: 2.5% of the draws are above
    draws: int


def p_value(value: float, null: FloatArray, tail: Tail = "upper", *, centre: float | None = None) -> float:
    """Return the probability of a statistic at least as extreme under the null hypothesis.

    Args:
        value: the statistic.
        null: (R,) its draws if there is no difference.
        tail: ``upper``: as large, for distances. ``both``: as far from the centre on either side (algorithm 1 of
            Meister & Cotterell 2021, corrected). ``paper``: algorithm 1 as printed, which omits the absolute value
            of the statistic and does not count it: 1 for statistics far below.
        centre: of ``both`` and ``paper``; None: the mean of the draws, for ``both`` with the statistic among them, so
            that all R + 1 values are treated alike.
    """
    slack = NEAR * max(1.0, abs(value))
    if tail == "upper":
        return (1 + int(np.count_nonzero(null >= value - slack))) / (1 + len(null))
    if tail == "paper":
        middle = float(null.mean()) if centre is None else centre
        return float(np.mean(np.abs(null - middle) >= value - middle - slack))
    middle = (float(null.sum()) + value) / (1 + len(null)) if centre is None else centre
    return (1 + int(np.count_nonzero(np.abs(null - middle) >= abs(value - middle) - slack))) / (1 + len(null))


def judged(value: float, null: FloatArray, tail: Tail = "upper", *, centre: float | None = None) -> ChanceTest:
    """Return a statistic with its p-value and a summary of its draws."""
    low, high = np.quantile(null, (0.025, 0.975))
    p = p_value(value, null, tail, centre=centre)
    return ChanceTest(float(value), p, float(null.mean()), float(low), float(high), len(null))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for a table of tests (Holm 1979): rejecting values up to a has family-wise error a.

    It needs no assumption on how the tests depend on each other.
    """
    order = np.argsort(p_values, kind="stable")
    m = len(order)
    adjusted = np.empty(m)
    worst = 0.0
    for place, i in enumerate(order.tolist()):
        worst = max(worst, min(1.0, (m - place) * p_values[i]))
        adjusted[i] = worst
    return [float(p) for p in adjusted]
