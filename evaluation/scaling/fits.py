"""All fits of a sweep, with intervals from seeds, or the scatter around the law, and evaluation sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.measures.bootstrap import REPLICATES, TAILS, Interval
from truesource.evaluation.scaling.cells import AXES, TITLES, Axis, ScalingCell
from truesource.evaluation.scaling.floor import LEAST as FLOOR_LEAST
from truesource.evaluation.scaling.floor import FloorFit, fit_floor
from truesource.evaluation.scaling.joint import JointFit, check_joint, fit_joint
from truesource.evaluation.scaling.losses import Losses, Resampled, groups_of, resample
from truesource.evaluation.scaling.power_law import (
    PowerLawFit,
    check_points,
    fit_power_law,
    law_of,
    log_design,
    weighted_line,
)
from truesource.evaluation.scaling.scatter import Scatter, draw, scatter_of
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track

USABLE = 0.9  #: share of the replicates in which every reducible loss must be above zero, or there is no law


@dataclass(frozen=True)
class UnknownFloor:
    """The loss fitted with its irreducible part unknown, and what that part really is."""

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
    scatter: Scatter  #: that intervals hold besides the evaluation sentences
    unknown: UnknownFloor | None  #: None: too few different x

    def band(self, x: FloatArray) -> FloatArray:
        """95% interval of the law at each x, pointwise, (2, K)."""
        middle = (np.log(self.x.min()) + np.log(self.x.max())) / 2.0
        values = self.lines[0][:, None] - self.lines[1][:, None] * (np.log(x) - middle)[None, :]
        return np.asarray(np.exp(np.quantile(values, TAILS, axis=0)))


@dataclass(frozen=True)
class Joint:
    """The fit over model size and corpus size together."""

    fit: JointFit
    intervals: dict[str, Interval]  #: A, alpha, B, beta
    rows: tuple[int, ...]
    failed: int
    scatter: Scatter  #: as in `AxisFit`
    at_bound: bool  #: the fit is, or so many replicates that an interval may end there: it is not determined


@dataclass(frozen=True)
class Fits:
    """What `fit_all` found."""

    axes: list[AxisFit]
    joint: Joint | None
    refused: list[str]  #: what could not be fitted though it was varied, and why
    replicates: int
    seed: int


def fit_all(cells: Sequence[ScalingCell], losses: Losses, *, seed: int, replicates: int = REPLICATES) -> Fits:
    """Fit the reducible loss over every axis that the cells vary, and over both sizes together where that is possible.

    Over sentences, cells of one model are taken together; over parameters and FLOPs, cells of one corpus size. Of the
    FLOPs of equal settings, which differ a little between seeds, the mean is taken. The joint law is over parameters
    without embeddings and sentences.

    Intervals are percentiles of replicates, the fit repeated on each with the weights of the first. A replicate has
    other evaluation sentences (`resample`) and, drawn by `draw`, other seeds: those of a shape are moved together at
    all corpus sizes. Where no setting has two seeds, the scatter around the law stands in for them, and over sentences
    the level is then that of this one seed. Another sample of train sentences, shared by the seeds of a cell, and a
    law of another form are not in the intervals. Of too few sentences there are none.

    Args:
        cells: (C,) what was trained.
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
    resampled: Resampled,
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
    resampled: Resampled,
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
    found = np.empty((int(whole.sum()), 3))
    for i, r in enumerate(track(np.flatnonzero(whole).tolist(), what, len(found))):
        again = fit_floor(x, resampled.irreducible[r] + resampled.reducible[r], fit)
        found[i] = again.floor, again.law.exponent, again.floor - resampled.irreducible[r]
    return UnknownFloor(
        fit,
        truth,
        interval(fit.floor, found[:, 0], resampled.few),
        interval(fit.law.exponent, found[:, 1], resampled.few),
        interval(fit.floor - truth, found[:, 2], resampled.few),
    )


def _joint(cells: Sequence[ScalingCell], losses: Losses, resampled: Resampled, seed: int) -> Joint:
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
        "A": lambda found: found.size.coefficient,
        "alpha": lambda found: found.size.exponent,
        "B": lambda found: found.data.coefficient,
        "beta": lambda found: found.data.exponent,
    }
    intervals = {
        name: interval(part(fit), np.array([part(found) for found in again]), resampled.few)
        for name, part in parts.items()
    }
    at_bound = fit.at_bound or float(np.mean([found.at_bound for found in again])) > TAILS[0]
    return Joint(fit, intervals, tuple(range(len(cells))), failed, scatter, at_bound)


def interval(value: float, replicates: FloatArray, few: bool) -> Interval:
    """A value with the percentiles of its replicates; without them of too few sentences."""
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
