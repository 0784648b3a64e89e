"""All fits of a sweep, with intervals from seeds, or the scatter around the law, and evaluation sentences.

Next to a law for each axis there are the joint law of model and corpus size, KL(N, D) = A N^-alpha + B D^-beta, with
known irreducible part, and the usual law, L(x) = E + A x^-alpha, with E unknown: here it can be checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.measures.bootstrap import REPLICATES, TAILS, Interval
from truesource.evaluation.scaling.cells import (
    AXES,
    TITLES,
    Axis,
    PowerLaw,
    PowerLawFit,
    ScalingCell,
    Scatter,
    best_fit,
    check_points,
    draw,
    explained,
    fit_power_law,
    groups_of,
    law_of,
    log_design,
    scatter_of,
    weighted_line,
)
from truesource.evaluation.scaling.losses import Losses, ResampledLosses, resample
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track

LEAST_PAIRS = 6  #: different pairs of N and D
JOINT_STARTS = (0.1, 0.3, 0.6, 1.2)  #: exponents that the search begins with
JOINT_MOST = 10.0  #: largest exponent that is looked for
NOTHING = 1e-3  #: a term with less than this share of the law at all points is not determined by them
FLOOR_LEAST = 4  #: different x: one more than parameters
FLOOR_STARTS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  #: exponents that the search begins with
FLOOR_MOST = 20.0  #: largest exponent that is looked for
USABLE = 0.9  #: share of the replicates in which every reducible loss must be above zero, or there is no law


@dataclass(frozen=True)
class JointFit:
    """The form of Hoffmann et al. (2022, equation 2) with E known."""

    size: PowerLaw  #: A N^-alpha
    data: PowerLaw  #: B D^-beta
    r2: float  #: of ln KL
    residual: float  #: root mean square of ln KL around it
    at_bound: bool  #: an exponent is at its bounds, or a term next to nothing: the points do not tell the parameters

    def __call__(self, n: FloatArray, d: FloatArray) -> FloatArray:
        """Return the value of the law at each pair, (K,)."""
        return np.asarray(self.size(n) + self.data(d))


def check_joint(n: FloatArray, d: FloatArray) -> None:
    """Refuse points that do not tell the four parameters apart.

    Raises:
        InputError: fewer than 6 different pairs, fewer than 3 values of both N and D, or one value of either.
    """
    pairs = len(np.unique(np.column_stack([n, d]), axis=0))
    sizes = sorted((len(np.unique(n)), len(np.unique(d))))
    if pairs < LEAST_PAIRS or sizes[0] < 2 or sizes[1] < 3:
        raise InputError(
            f"the joint law needs at least {LEAST_PAIRS} different cells, with 2 sizes of one kind and 3 of the other;"
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
        beginnings = [np.array([half, half, a, b]) for a in JOINT_STARTS for b in JOINT_STARTS]
    else:
        beginnings = [_parameters(start, middles)]
    low = np.array([target.min() - 30.0, target.min() - 30.0, 0.0, 0.0])
    high = np.array([target.max() + 5.0, target.max() + 5.0, JOINT_MOST, JOINT_MOST])
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
        at_bound=min(alpha, beta) < 1e-3 or max(alpha, beta) > JOINT_MOST - 0.1 or largest < NOTHING,
    )


def _parameters(fit: JointFit, middles: list[float]) -> FloatArray:
    laws = (fit.size, fit.data)
    logs = [
        np.log(max(law.coefficient, 1e-300)) - law.exponent * np.log(m) for law, m in zip(laws, middles, strict=True)
    ]
    return np.array([*logs, *(law.exponent for law in laws)])


@dataclass(frozen=True)
class FloorFit:
    """L(x) = floor + coefficient * x ** -exponent, nats a token."""

    floor: float  #: E
    law: PowerLaw
    residual: float  #: root mean square of ln L around it
    at_bound: bool  #: the floor came out at 0, or the exponent at its bounds: the points do not say where E is

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the value of the law at each x, (K,)."""
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
    check_points(x, loss, FLOOR_LEAST, "the law with unknown floor")
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
        beginnings = [_linear(scaled, loss, exponent) for exponent in FLOOR_STARTS]
    else:
        factor = start.law.coefficient * middle**-start.law.exponent
        beginnings = [np.array([start.floor, factor, start.law.exponent])]
    low, high = np.array([0.0, 1e-12, 1e-4]), np.array([np.inf, np.inf, FLOOR_MOST])
    best = best_fit(
        residuals,
        jacobian,
        [np.clip(begin, low + 1e-9, np.array([np.inf, np.inf, FLOOR_MOST - 1e-6])) for begin in beginnings],
        (low, high),
        again=start is not None,
    )
    floor, factor, exponent = (float(value) for value in best.x)
    return FloorFit(
        floor=floor,
        law=PowerLaw(factor * middle**exponent, exponent),
        residual=float(np.sqrt(2.0 * best.cost / len(x))),
        at_bound=floor < 1e-4 or exponent < 1e-3 or exponent > FLOOR_MOST - 0.1,
    )


def _linear(scaled: FloatArray, loss: FloatArray, exponent: float) -> FloatArray:
    """Return the floor and factor of least squares of L for a given exponent."""
    design = np.column_stack([np.ones(len(scaled)), scaled**-exponent])
    floor, factor = np.linalg.lstsq(design, loss, rcond=None)[0]
    return np.array([max(float(floor), 1e-3 * loss.min()), max(float(factor), 1e-3 * np.ptp(loss)), exponent])


@dataclass(frozen=True)
class UnknownFloor:
    """The loss fitted with its irreducible part unknown, and the true part."""

    fit: FloorFit
    truth: float  #: nats a token
    floor: Interval
    exponent: Interval
    error: Interval  #: fitted less true floor, nats a token


@dataclass(frozen=True, kw_only=True)
class AxisFit:
    """A power law of the reducible loss over one axis, the rest held."""

    axis: Axis
    held: str
    rows: tuple[int, ...]  #: numbers of the cells
    x: FloatArray  #: (K,)
    y: FloatArray  #: (K,) reducible loss, nats a token
    fit: PowerLawFit
    coefficient: Interval
    exponent: Interval
    lines: FloatArray  #: (2, R) coefficients of the replicates in the columns of `log_design` of ``x``
    failed: int  #: replicates without a fit: a reducible loss at zero or below
    scatter: Scatter  #: included in intervals, with the evaluation sentences
    unknown: UnknownFloor | None  #: None: too few different x

    def band(self, x: FloatArray) -> FloatArray:
        """Return 95% interval of the law at each x, pointwise, (2, K)."""
        middle = (np.log(self.x.min()) + np.log(self.x.max())) / 2.0
        values = self.lines[0][:, None] - self.lines[1][:, None] * (np.log(x) - middle)[None, :]
        return np.asarray(np.exp(np.quantile(values, TAILS, axis=0)))


@dataclass(frozen=True)
class JointResult:
    """The fit over model size and corpus size together."""

    fit: JointFit
    intervals: dict[str, Interval]  #: A, alpha, B, beta
    rows: tuple[int, ...]
    failed: int
    scatter: Scatter  #: as in `AxisFit`
    at_bound: bool  #: the fit is, or so many replicates that an interval may end there: it is not determined


@dataclass(frozen=True)
class Fits:
    """Result of `fit_all`."""

    axes: list[AxisFit]
    joint: JointResult | None
    refused: list[str]  #: what could not be fitted though it was varied, and why
    replicates: int
    seed: int


def fit_all(cells: Sequence[ScalingCell], losses: Losses, *, seed: int, replicates: int = REPLICATES) -> Fits:
    """Fit the reducible loss over every axis that the cells vary, and over both sizes together if possible.

    Over sentences, cells of one model are taken together; over parameters and FLOPs, cells of one corpus size. Of the
    FLOPs of equal settings, which differ a little between seeds, the mean is taken. The joint law is over parameters
    without embeddings and sentences.

    Intervals are percentiles of replicates, the fit repeated on each with the weights of the first. A replicate has
    other evaluation sentences (`resample`) and, drawn by `draw`, other seeds: the seeds of a shape are moved together
    at all corpus sizes. If no setting has two seeds, the scatter around the law replaces them, and over sentences
    the level is then the level of this one seed. Another sample of train sentences, shared by the seeds of a cell, and
    a law of another form are not in the intervals. Too few sentences have no intervals.

    Args:
        cells: (C,) trained models.
        losses: of the same C models.
        seed: of the bootstrap.
        replicates: of the bootstrap.
    """
    resampled, spread = resample(losses, seed=seed, replicates=replicates)
    axes: list[AxisFit] = []
    refused: dict[str, list[str]] = {}
    for axis in AXES:
        for rows in groups_of([cell.held(axis) for cell in cells]):
            chosen = [cells[i] for i in rows]
            if len({cell.varied(axis) for cell in chosen}) == 1:
                continue
            try:
                axes.append(_over(axis, chosen, rows, losses, resampled, spread, seed))
            except InputError as error:
                refused.setdefault(str(error), []).append(TITLES[axis])
    joint = None
    if len({cell.sentences for cell in cells}) > 1 and len({cell.model for cell in cells}) > 1:
        try:
            joint = _joint(cells, losses, resampled, seed)
        except InputError as error:
            refused.setdefault(str(error), []).append("model size and sentences together")
    reasons = [f"no law over {', '.join(dict.fromkeys(over))}: {reason}" for reason, over in refused.items()]
    return Fits(axes, joint, reasons, replicates, seed)


def _over(
    axis: Axis,
    cells: Sequence[ScalingCell],
    rows: Sequence[int],
    losses: Losses,
    resampled: ResampledLosses,
    spread: FloatArray,
    seed: int,
) -> AxisFit:
    x = _positions(axis, cells)
    taken, draws = losses.take(rows), resampled.take(rows)
    y = taken.reducible
    fit = fit_power_law(
        x,
        y,
        spread[list(rows)],
        settings=[cell.settings for cell in cells],
        seeds=[cell.seed for cell in cells] if axis == "sentences" else None,
    )
    whole = draws.whole
    failed = int((~whole).sum())
    _require_usable(failed, len(whole))
    scatter = scatter_of(cells, np.log(y), np.log(y / fit.law(x)), 2)
    moved = draws.shifted(draw(scatter, seed=seed, replicates=len(whole)))
    lines = weighted_line(log_design(x), fit.weights, np.log(moved.reducible[whole]).T)
    return AxisFit(
        axis=axis,
        held=cells[0].held(axis),
        rows=tuple(rows),
        x=x,
        y=y,
        fit=fit,
        coefficient=interval(
            fit.law.coefficient, np.array([law_of(line, x).coefficient for line in lines.T]), draws.few
        ),
        exponent=interval(fit.law.exponent, lines[1], draws.few),
        lines=lines,
        failed=failed,
        scatter=scatter,
        unknown=_unknown_floor(f"floor over {TITLES[axis]}", x, cells, taken, draws, scatter, seed),
    )


def _positions(axis: Axis, cells: Sequence[ScalingCell]) -> FloatArray:
    x = np.array([cell.value(axis) for cell in cells])
    for group in groups_of([cell.settings for cell in cells]):
        x[group] = x[group].mean()
    return x


def _unknown_floor(
    what: str,
    x: FloatArray,
    cells: Sequence[ScalingCell],
    losses: Losses,
    resampled: ResampledLosses,
    scatter: Scatter,
    seed: int,
) -> UnknownFloor | None:
    if len(np.unique(x)) < FLOOR_LEAST:
        return None
    truth = losses.irreducible
    y, whole = losses.reducible, resampled.whole
    fit = fit_floor(x, truth + y)
    if not scatter.replicated:  # around this law, to first order in ln KL
        scatter = scatter_of(cells, np.log(y), (truth + y - fit(x)) / y, 3)
    resampled = resampled.shifted(draw(scatter, seed=seed, replicates=len(whole)))
    refitted = np.empty((int(whole.sum()), 3))
    for i, r in enumerate(track(np.flatnonzero(whole).tolist(), what, len(refitted))):
        again = fit_floor(x, resampled.irreducible[r] + resampled.reducible[r], fit)
        refitted[i] = again.floor, again.law.exponent, again.floor - resampled.irreducible[r]
    return UnknownFloor(
        fit,
        truth,
        interval(fit.floor, refitted[:, 0], resampled.few),
        interval(fit.law.exponent, refitted[:, 1], resampled.few),
        interval(fit.floor - truth, refitted[:, 2], resampled.few),
    )


def _joint(cells: Sequence[ScalingCell], losses: Losses, resampled: ResampledLosses, seed: int) -> JointResult:
    n = _positions("parameters_without_embeddings", cells)
    d = _positions("sentences", cells)
    check_joint(n, d)
    y = losses.reducible
    check_points(np.concatenate([n, d]), np.concatenate([y, y]))
    fit = fit_joint(n, d, y)
    whole = resampled.whole
    failed = int((~whole).sum())
    _require_usable(failed, len(whole))
    scatter = scatter_of(cells, np.log(y), np.log(y / fit(n, d)), 4)
    resampled = resampled.shifted(draw(scatter, seed=seed, replicates=len(whole)))
    again = [
        fit_joint(n, d, resampled.reducible[r], fit)
        for r in track(np.flatnonzero(whole).tolist(), "joint law of size and data, by resample", int(whole.sum()))
    ]
    parts: dict[str, Callable[[JointFit], float]] = {
        "A": lambda law: law.size.coefficient,
        "alpha": lambda law: law.size.exponent,
        "B": lambda law: law.data.coefficient,
        "beta": lambda law: law.data.exponent,
    }
    intervals = {
        name: interval(part(fit), np.array([part(law) for law in again]), resampled.few) for name, part in parts.items()
    }
    at_bound = fit.at_bound or float(np.mean([law.at_bound for law in again])) > TAILS[0]
    return JointResult(fit, intervals, tuple(range(len(cells))), failed, scatter, at_bound)


def interval(value: float, replicates: FloatArray, few: bool) -> Interval:
    """Return a value with the percentiles of its replicates; without them of too few sentences."""
    if few:
        return Interval(float(value))
    low, high = np.quantile(replicates, TAILS)
    return Interval(float(value), float(low), float(high))


def _require_usable(failed: int, replicates: int) -> None:
    if replicates - failed < USABLE * replicates:
        raise InputError(
            f"in {failed} of {replicates} resamples of the evaluation sentences a reducible loss is not above zero;"
            " evaluate more sentences"
        )
