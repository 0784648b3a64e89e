"""When something is learned: the step at which a divergence first falls below a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.measures.bootstrap import TAILS

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Milestone:
    """A step, and the interval of it; None is later than the last checkpoint, or never."""

    step: float | None
    low: float | None
    high: float | None


def first_below(steps: Sequence[int], divergence: FloatArray, level: FloatArray) -> FloatArray:
    """The step at which each curve first lies below its level, (...,); inf where it never does.

    Between checkpoints a curve is a straight line over ln(1 + step): a logarithmic axis on which step 0 has a place.

    Args:
        steps: (C,) rising.
        divergence: (..., C) nats.
        level: (...,) nats; NaN is never reached.
    """
    x = np.log1p(np.asarray(steps, dtype=np.float64))
    below = divergence < level[..., None]
    at = np.argmax(below, axis=-1)
    before = np.maximum(at - 1, 0)
    lower = np.take_along_axis(divergence, at[..., None], -1)[..., 0]
    upper = np.take_along_axis(divergence, before[..., None], -1)[..., 0]
    part = np.divide(upper - level, upper - lower, out=np.zeros_like(lower), where=(at > 0) & (upper > lower))
    found = np.expm1(x[before] + part * (x[at] - x[before]))
    return np.where(below.any(axis=-1), found, np.inf)


def milestones(
    steps: Sequence[int], divergence: FloatArray, resampled: FloatArray, threshold: float | None
) -> list[Milestone]:
    """Milestones of G curves: below ``threshold`` nats, or, if None, below half of the first value.

    Half of a first value that is not above 0 is never reached.

    Args:
        steps: (C,) rising.
        divergence: (C, G) nats.
        resampled: (R, C, G) the same of resampled sentences; resamples without the group are NaN throughout.
        threshold: nats a token.
    """

    def steps_of(curves: FloatArray) -> FloatArray:
        half = np.where(curves[..., 0] > 0.0, curves[..., 0] / 2.0, np.nan)
        return first_below(steps, curves, half if threshold is None else np.full_like(half, threshold))

    value = steps_of(divergence.T)
    drawn = steps_of(np.moveaxis(resampled, 1, -1))
    found = []
    for g, step in enumerate(value.tolist()):
        own = np.sort(drawn[~np.isnan(resampled[:, 0, g]), g])
        # order statistics, as nothing lies between a finite step and an infinite one
        low, high = (float(own[min(int(tail * len(own)), len(own) - 1)]) for tail in TAILS)
        found.append(Milestone(*(x if np.isfinite(x) else None for x in (step, low, high))))
    return found
