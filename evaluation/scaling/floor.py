"""The usual law of the loss, L(x) = E + A x^-alpha, with the irreducible part E unknown: here it can be checked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truesource.evaluation.scaling.power_law import PowerLaw, check_points
from truesource.evaluation.scaling.search import best_fit
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

LEAST = 4  #: different x: one more than parameters
STARTS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  #: exponents that the search begins with
MOST = 20.0  #: largest exponent that is looked for


@dataclass(frozen=True)
class FloorFit:
    """L(x) = floor + coefficient * x ** -exponent, nats a token."""

    floor: float  #: E
    law: PowerLaw
    residual: float  #: root mean square of ln L around it
    at_bound: bool  #: the floor came out at 0, or the exponent at its bounds: the points do not say where E is

    def __call__(self, x: FloatArray) -> FloatArray:
        """Its value at each x, (K,)."""
        return self.floor + self.law(x)


def fit_floor(x: FloatArray, loss: FloatArray, start: FloorFit | None = None) -> FloorFit:
    """Fit by least squares of ln L, 0 <= E, 0 <= A, 0 < alpha.

    Hoffmann et al. (2022, D.2) minimise a Huber loss of the same residuals; replicates have no outliers to guard
    against. The best of several starts is taken, or, with ``start``, the optimum near it.

    Args:
        x: (K,) above zero.
        loss: (K,) nats a token, above zero.
        start: where to begin.

    Raises:
        InputError: fewer than 4 different x, or values that are not above zero.
    """
    x, loss = np.asarray(x, dtype=np.float64), np.asarray(loss, dtype=np.float64)
    check_points(x, loss, LEAST, "the law with unknown floor")
    if float(np.ptp(loss)) == 0.0:
        raise InputError("all losses are equal; no law can be told from them")
    middle = float(np.exp(np.log(x).mean()))
    scaled, target = x / middle, np.log(loss)

    def residuals(parameters: FloatArray) -> FloatArray:
        floor, factor, exponent = parameters
        return np.asarray(np.log(floor + factor * scaled**-exponent) - target)

    def jacobian(parameters: FloatArray) -> FloatArray:
        floor, factor, exponent = parameters
        power = scaled**-exponent
        value = floor + factor * power
        return np.column_stack([1.0 / value, power / value, -factor * power * np.log(scaled) / value])

    if start is None:
        beginnings = [_linear(scaled, loss, exponent) for exponent in STARTS]
    else:
        factor = start.law.coefficient * middle**-start.law.exponent
        beginnings = [np.array([start.floor, factor, start.law.exponent])]
    low, high = np.array([0.0, 1e-12, 1e-4]), np.array([np.inf, np.inf, MOST])
    best = best_fit(
        residuals,
        jacobian,
        [np.clip(begin, low + 1e-9, np.array([np.inf, np.inf, MOST - 1e-6])) for begin in beginnings],
        (low, high),
        again=start is not None,
    )
    floor, factor, exponent = (float(value) for value in best.x)
    return FloorFit(
        floor=floor,
        law=PowerLaw(factor * middle**exponent, exponent),
        residual=float(np.sqrt(2.0 * best.cost / len(x))),
        at_bound=floor < 1e-4 or exponent < 1e-3 or exponent > MOST - 0.1,
    )


def _linear(scaled: FloatArray, loss: FloatArray, exponent: float) -> FloatArray:
    """Floor and factor of least squares of L for a given exponent."""
    design = np.column_stack([np.ones(len(scaled)), scaled**-exponent])
    floor, factor = np.linalg.lstsq(design, loss, rcond=None)[0]
    return np.array([max(float(floor), 1e-3 * loss.min()), max(float(factor), 1e-3 * np.ptp(loss)), exponent])
