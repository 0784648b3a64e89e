"""Least squares from several starting points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from scipy.optimize import least_squares

from truesource.grammar.support.arrays import FloatArray


def best_fit(
    residuals: Callable[[FloatArray], FloatArray],
    jacobian: Callable[[FloatArray], FloatArray],
    beginnings: Sequence[FloatArray],
    bounds: tuple[FloatArray, FloatArray],
    *,
    again: bool,
) -> Any:
    """What `scipy.optimize.least_squares` finds at the lowest cost.

    Args:
        residuals: of the parameters.
        jacobian: of the residuals.
        beginnings: where the search starts, within the bounds.
        bounds: lowest and highest parameters.
        again: whether a resample is fitted, from the fit of the whole: coarser, and with fewer steps.
    """
    tolerance, steps = (1e-9, 50) if again else (1e-14, 500)
    found = [
        least_squares(
            residuals, begin, jacobian, bounds=bounds, xtol=tolerance, ftol=tolerance, gtol=tolerance, max_nfev=steps
        )
        for begin in beginnings
    ]
    return min(found, key=lambda result: float(result.cost))
