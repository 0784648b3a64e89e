"""When something is learned: the step from which a divergence stays below a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truesource.evaluation.measures.bootstrap import TAILS
from truesource.grammar.support.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class Milestone:
    """A step, and the interval of it.

    The interval is of what is not known of the step: which sentences there are, and where it is between two
    checkpoints. Other seeds of training are not in it.
    """

    step: float | None  #: None: the curve ends above the level, or there is no level
    low: float | None  #: None: there is no interval
    high: float | None  #: None: later than the last checkpoint, or there is no interval


class Crossings(NamedTuple):
    """Where curves come below a level for good; all inf where there is no level."""

    step: FloatArray  #: (...,) read off between the two checkpoints; inf where the curve ends above
    before: FloatArray  #: (...,) step of the last checkpoint that is not below; of the first one if all are below
    at: FloatArray  #: (...,) step of the checkpoint after it; inf where the curve ends above


def stays_below(steps: Sequence[int], divergence: FloatArray, level: FloatArray) -> Crossings:
    """The step from which each curve is nearer to 0 than its level, and remains so.

    Between checkpoints a curve is a straight line over ln(1 + step): a logarithmic axis on which step 0 has a place.

    Args:
        steps: (C,) rising.
        divergence: (..., C) nats, of either sign; NaN is never below.
        level: (...,) nats, above 0; NaN: there is none.
    """
    known = np.asarray(steps, dtype=np.float64)
    x, last = np.log1p(known), len(known) - 1
    above = ~(np.abs(divergence) < level[..., None])
    from_end = np.argmax(above[..., ::-1], axis=-1)
    after = np.where(above.any(axis=-1), last + 1 - from_end, 0)
    at, before = np.minimum(after, last), np.maximum(after - 1, 0)
    upper, lower = (np.take_along_axis(divergence, i[..., None], -1)[..., 0] for i in (before, at))
    between = (after > 0) & (after <= last) & np.isfinite(upper)
    part = np.divide(np.abs(upper) - level, np.abs(upper - lower), out=np.zeros_like(lower), where=between)
    ended = after > last
    found = np.where(after > 0, np.expm1(x[before] + part * (x[at] - x[before])), known[0])
    return Crossings(
        np.where(ended, np.inf, found),
        np.where(np.isnan(level), np.inf, known[before]),
        np.where(ended, np.inf, known[at]),
    )


def crossings(steps: Sequence[int], divergence: FloatArray, threshold: float | None) -> Crossings:
    """Where curves stay below ``threshold`` nats, or, if None, below half of their first value if that is above 0.

    Args:
        steps: (C,) rising.
        divergence: (..., C) nats.
        threshold: nats a token.
    """
    first = divergence[..., 0]
    half = np.where(first > 0.0, first / 2.0, np.nan)
    return stays_below(steps, divergence, half if threshold is None else np.full_like(half, threshold))


def milestones(crossed: Crossings, resampled: Crossings, there: BoolArray) -> list[Milestone]:
    """Milestones of G curves with 95% intervals from resampled sentences.

    An interval goes from the 2.5% quantile of the checkpoints before to the 97.5% quantile of the checkpoints after.

    Args:
        crossed: of the curves, (G,).
        resampled: of resampled sentences, (R, G).
        there: (R, G) whether the group occurs in the resample; where it never does there is no interval.
    """
    made = []
    for g, (step, before) in enumerate(zip(crossed.step.tolist(), crossed.before.tolist(), strict=True)):
        own = there[:, g]
        ends = [np.inf, np.inf]
        if np.isfinite(before) and own.any():
            # order statistics, as nothing lies between a finite step and an infinite one
            ends = [
                float(np.sort(side[own, g])[min(int(tail * own.sum()), own.sum() - 1)])
                for side, tail in zip((resampled.before, resampled.at), TAILS, strict=True)
            ]
        made.append(Milestone(*(x if np.isfinite(x) else None for x in (step, *ends))))
    return made
