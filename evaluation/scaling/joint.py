"""Model size and corpus size together: KL(N, D) = A N^-alpha + B D^-beta, the irreducible part known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truesource.evaluation.scaling.power_law import PowerLaw, check_points, explained
from truesource.evaluation.scaling.search import best_fit
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

LEAST = 6  #: different pairs of N and D
STARTS = (0.1, 0.3, 0.6, 1.2)  #: exponents that the search begins with
MOST = 10.0  #: largest exponent that is looked for
NOTHING = 1e-3  #: a term with less than this share of the law at all points is not determined by them


@dataclass(frozen=True)
class JointFit:
    """The form of Hoffmann et al. (2022, equation 2) with E known."""

    size: PowerLaw  #: A N^-alpha
    data: PowerLaw  #: B D^-beta
    r2: float  #: of ln KL
    residual: float  #: root mean square of ln KL around it
    at_bound: bool  #: an exponent is at its bounds, or a term next to nothing: the points do not tell the parameters

    def __call__(self, n: FloatArray, d: FloatArray) -> FloatArray:
        """Its value at each pair, (K,)."""
        return np.asarray(self.size(n) + self.data(d))


def check_joint(n: FloatArray, d: FloatArray) -> None:
    """Refuse points that do not tell the four parameters apart.

    Raises:
        InputError: fewer than 6 different pairs, fewer than 3 values of both N and D, or one value of either.
    """
    pairs = len(np.unique(np.column_stack([n, d]), axis=0))
    sizes = sorted((len(np.unique(n)), len(np.unique(d))))
    if pairs < LEAST or sizes[0] < 2 or sizes[1] < 3:
        raise InputError(
            f"the joint law needs at least {LEAST} different cells, with 2 sizes of one kind and 3 of the other;"
            f" there are {pairs}, of {len(np.unique(n))} model sizes and {len(np.unique(d))} corpus sizes"
        )


def fit_joint(n: FloatArray, d: FloatArray, y: FloatArray, start: JointFit | None = None) -> JointFit:
    """Fit by least squares of ln KL; coefficients and exponents are not below zero.

    Args:
        n: (K,) parameters.
        d: (K,) sentences, or tokens.
        y: (K,) reducible loss, nats a token, above zero.
        start: where to begin; None: from many starts, the best is taken.

    Raises:
        InputError: the points are too few, or a loss is not above zero.
    """
    n, d, y = (np.asarray(values, dtype=np.float64) for values in (n, d, y))
    check_joint(n, d)
    check_points(np.concatenate([n, d]), np.concatenate([y, y]))
    middles = [float(np.exp(np.log(values).mean())) for values in (n, d)]
    logs = np.column_stack([np.log(n / middles[0]), np.log(d / middles[1])])
    target = np.log(y)

    def terms(parameters: FloatArray) -> FloatArray:
        return np.asarray(np.exp(parameters[:2] - logs * parameters[2:]))

    def residuals(parameters: FloatArray) -> FloatArray:
        return np.asarray(np.log(terms(parameters).sum(axis=1)) - target)

    def jacobian(parameters: FloatArray) -> FloatArray:
        parts = terms(parameters)
        shares = parts / parts.sum(axis=1, keepdims=True)
        return np.column_stack([shares, -shares * logs])

    if start is None:
        half = float(target.mean()) - np.log(2.0)
        beginnings = [np.array([half, half, a, b]) for a in STARTS for b in STARTS]
    else:
        beginnings = [_parameters(start, middles)]
    low = np.array([target.min() - 30.0, target.min() - 30.0, 0.0, 0.0])
    high = np.array([target.max() + 5.0, target.max() + 5.0, MOST, MOST])
    best = best_fit(
        residuals,
        jacobian,
        [np.clip(begin, low + 1e-9, high - 1e-9) for begin in beginnings],
        (low, high),
        again=start is not None,
    )
    log_a, log_b, alpha, beta = (float(value) for value in best.x)
    parts = terms(best.x)
    largest = float((parts / parts.sum(axis=1, keepdims=True)).max(axis=0).min())
    return JointFit(
        size=PowerLaw(float(np.exp(log_a + alpha * np.log(middles[0]))), alpha),
        data=PowerLaw(float(np.exp(log_b + beta * np.log(middles[1]))), beta),
        r2=explained(target, best.fun),
        residual=float(np.sqrt(2.0 * best.cost / len(y))),
        at_bound=min(alpha, beta) < 1e-3 or max(alpha, beta) > MOST - 0.1 or largest < NOTHING,
    )


def _parameters(fit: JointFit, middles: list[float]) -> FloatArray:
    laws = (fit.size, fit.data)
    logs = [
        np.log(max(law.coefficient, 1e-300)) - law.exponent * np.log(m) for law, m in zip(laws, middles, strict=True)
    ]
    return np.array([*logs, *(law.exponent for law in laws)])
