"""Cells of a sweep (settings, cost, scatter), and their power law.

Seeds are crossed with corpus sizes: cells of one shape and seed start from the same weights at every corpus size, and
their deviations go together, the more the nearer the sizes. So the seeds of a shape are drawn whole. Shapes share
nothing but the number of a seed.

The power law of the reducible loss, KL(x) = A x^-alpha, is a straight line of logarithms, fitted by maximum likelihood.
The loss of a model is the loss of the truth plus the divergence. Laws of the loss have the first as a free constant
(Hestness et al. 2017; Kaplan et al. 2020; Hoffmann et al. 2022); here it is known, so only the divergence is fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import least_squares, minimize_scalar
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

Axis = Literal["sentences", "parameters", "parameters_without_embeddings", "flops"]
AXES: tuple[Axis, ...] = ("sentences", "parameters", "parameters_without_embeddings", "flops")
TITLES: dict[Axis, str] = {
    "sentences": "sentences",
    "parameters": "parameters",
    "parameters_without_embeddings": "parameters without embeddings",
    "flops": "FLOPs of training",
}
FURTHEST = 50.0  #: most that ln KL is moved: far outside of any 95% interval, and its exponential is a number
LEAST = 3  #: different x that a power law needs, to be more than a line through its points
LARGEST = 700.0  #: of the absolute logarithm of a coefficient; the exponential of more is no float64
_ROUNDING = 1e-24  #: mean squares of residuals that rounding alone leaves


@dataclass(frozen=True)
class ScalingCell:
    """One trained model."""

    name: str
    model: str  #: what the shape is called
    sentences: int  #: of its train split
    seed: int
    parameters: int
    parameters_without_embeddings: int
    flops: float

    @property
    def settings(self) -> tuple[str, int]:
        """Equal for cells that differ in their seed alone."""
        return self.model, self.sentences

    def value(self, axis: Axis) -> float:
        """Return the place of the cell on an axis."""
        return float(getattr(self, axis))

    def held(self, axis: Axis) -> str:
        """Return the setting that a fit over ``axis`` holds equal in all its cells."""
        return self.model if axis == "sentences" else f"{self.sentences:,} sentences"

    def varied(self, axis: Axis) -> str | int:
        """Return the setting that differs between the cells of a fit over ``axis``."""
        return self.sentences if axis == "sentences" else self.model


def groups_of(settings: Sequence[Hashable]) -> list[list[int]]:
    """Return the row numbers of equal settings, in order of first appearance."""
    groups: dict[Hashable, list[int]] = {}
    for row, key in enumerate(settings):
        groups.setdefault(key, []).append(row)
    return list(groups.values())


@dataclass(frozen=True)
class Scatter:
    """Scatter of ln KL between K cells, which a law does not explain."""

    replicated: bool  #: from seeds of equal settings; False: there are none, it is the scatter around the law
    moves: FloatArray  #: (M, K) of ln KL, each times a standard normal number
    free: int  #: degrees of freedom that their size is estimated with, 1 or more


def scatter_of(cells: Sequence[ScalingCell], target: FloatArray, residuals: FloatArray, parameters: int) -> Scatter:
    """Estimate the scatter of the cells of a fit.

    Where seeds of a shape are at several corpus sizes, a move is the deviation of one seed from the means of the
    sizes, over sqrt(r (r - 1)) for r seeds: any linear estimate from the means then varies as it does from seed to
    seed, whatever goes together, with r - 1 degrees of freedom for each shape, added up over shapes. A missing cell
    is filled in with the sum of its size's and its seed's effects by least squares. Otherwise cells are moved alone,
    with one common standard deviation: within settings, or, if no setting has two seeds, around the law.

    Args:
        cells: (K,) of the fit.
        target: (K,) ln KL.
        residuals: (K,) of ln KL around the law.
        parameters: of the law, fewer than K.
    """
    n, settings = len(cells), groups_of([cell.settings for cell in cells])
    if n == len(settings):
        return Scatter(False, _alone(residuals, n - parameters), n - parameters)
    shapes = groups_of([cell.model for cell in cells])
    scatters = [_whole_seeds([cells[i] for i in rows], target[rows]) for rows in shapes]
    whole = [moves for moves in scatters if moves is not None]
    if len(whole) == len(shapes):
        placed = [np.zeros((len(moves), n)) for moves in whole]
        for into, moves, rows in zip(placed, whole, shapes, strict=True):
            into[:, rows] = moves
        together = np.concatenate(placed)
        return Scatter(True, together, len(together) - len(shapes))
    within = np.array(target)
    for group in settings:
        within[group] -= target[group].mean()
    return Scatter(True, _alone(within, n - len(settings)), n - len(settings))


def draw(scatter: Scatter, *, seed: int, replicates: int) -> FloatArray:
    """Draw what to add to each ln KL in each replicate, (R, K).

    Normal, and stretched within a replicate by sqrt(f / chi2_f), so that it is distributed as Student's t with f
    degrees of freedom.

    Args:
        scatter: of K cells.
        seed: of the draws.
        replicates: R.
    """
    rng = np.random.default_rng([seed, 1])
    levels = (rng.permutation(replicates) + 0.5) / replicates  # every quantile once
    stretch = np.sqrt(scatter.free / chi2.ppf(levels, scatter.free))
    moves = stretch[:, None] * (rng.normal(size=(replicates, len(scatter.moves))) @ scatter.moves)
    return np.asarray(np.clip(moves, -FURTHEST, FURTHEST))


def _alone(residuals: FloatArray, free: int) -> FloatArray:
    return np.asarray(np.sqrt((residuals**2).sum() / free) * np.eye(len(residuals)))


def _whole_seeds(cells: Sequence[ScalingCell], target: FloatArray) -> FloatArray | None:
    """Return moves of the cells of one shape, (r, K); None if no seed is at several sizes, or not all are connected."""
    sizes, size = np.unique([cell.sentences for cell in cells], return_inverse=True)
    seeds, seed = np.unique([cell.seed for cell in cells], return_inverse=True)
    r = len(seeds)
    design = np.column_stack([np.eye(len(sizes))[size], np.eye(r)[seed]])
    if len(sizes) == 1 or r == 1 or np.linalg.matrix_rank(design) < len(sizes) + r - 1:
        return None
    effects = np.linalg.lstsq(design, target)[0]
    table = effects[None, : len(sizes)] + effects[len(sizes) :, None]  # (seeds, sizes)
    table[seed, size] = target
    deviations = (table - table.mean(axis=0)) / np.sqrt(r * (r - 1))
    return np.asarray(deviations[:, size])


@dataclass(frozen=True)
class PowerLaw:
    """Y = coefficient * x ** -exponent."""

    coefficient: float
    exponent: float

    def __call__(self, x: FloatArray) -> FloatArray:
        """Return the value of the law at each x, (K,)."""
        return np.asarray(self.coefficient * x**-self.exponent)


@dataclass(frozen=True)
class PowerLawFit:
    """A fitted law, and how well it fits."""

    law: PowerLaw
    r2: float  #: share of the variance of ln y that it explains; 1 without variance
    residual: float  #: standard deviation of ln y around it, degrees of freedom counted: .05 is 5%
    between: float  #: the part of it without sampling error of the evaluation sentences and effects of seeds
    lack_of_fit: float | None  #: p-value of the F-test that the line is enough; None without replicates
    weights: FloatArray  #: (K,) of the points, inverse variances of ln y up to a factor


def check_points(x: FloatArray, y: FloatArray, least: int = LEAST, what: str = "a power law") -> None:
    """Refuse what no law can be fitted to.

    Raises:
        InputError: there are fewer than ``least`` different x, or a value has no logarithm.
    """
    different = len(np.unique(x))
    if different < least:
        raise InputError(
            f"{what} needs at least {least} different x; there {'is' if different == 1 else 'are'} {different}"
        )
    if not (np.isfinite(y).all() and (y > 0.0).all()):
        raise InputError(
            f"the reducible loss of a model is {y[~(y > 0.0)].min():.4g} nats on these sentences: it has no logarithm;"
            " evaluate more sentences"
        )
    if not (np.isfinite(x).all() and (x > 0.0).all()):
        raise InputError("every x of a power law is above zero")


def fit_power_law(
    x: FloatArray,
    y: FloatArray,
    spread: FloatArray | None = None,
    *,
    settings: Sequence[Hashable] | None = None,
    seeds: Sequence[Hashable] | None = None,
) -> PowerLawFit:
    """Fit ln y = ln A - alpha ln x + e, e normal with variance ``spread**2`` + s^2; A, alpha, s by maximum likelihood.

    With equal ``spread`` this is least squares of the logarithms. With ``seeds``, the deviation that all points of a
    seed share is no part of e: it moves the level, not the slope, so s and the weights come from a model with a level
    for each seed. If every seed has the same points, the law is at the mean level.

    Args:
        x: (K,) above zero.
        y: (K,) above zero.
        spread: (K,) standard deviation of each ln y known beforehand; None: 0.
        settings: (K,) equal for replicates; None: no replicates.
        seeds: (K,) equal for points that share part of their deviation; None: no points do.

    Raises:
        InputError: fewer than 3 different x, or values without logarithm.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    check_points(x, y)
    design, target = log_design(x), np.log(y)
    known_variance = np.zeros(len(x)) if spread is None else np.asarray(spread, dtype=np.float64) ** 2
    levels = design if seeds is None else _with_levels(design, seeds)

    def cost(variance: float) -> float:
        weights = 1.0 / (known_variance + variance)
        residuals = target - levels @ weighted_line(levels, weights, target)
        return float((np.log(known_variance + variance) + weights * residuals**2).sum())

    flat = weighted_line(levels, np.ones(len(x)), target)
    squares = max(float(((target - levels @ flat) ** 2).mean()), _ROUNDING)
    if np.ptp(known_variance) == 0.0:
        variance, weights = max(0.0, squares - float(known_variance[0])), np.ones(len(x))
    else:
        low = np.log(squares) - 30.0
        best = minimize_scalar(lambda t: cost(np.exp(t)), bounds=(low, np.log(squares) + 10.0), method="bounded")
        variance = float(np.exp(best.x))
        weights = 1.0 / (known_variance + variance)
    line = weighted_line(design, weights, target)
    residuals = target - design @ line
    return PowerLawFit(
        law=law_of(line, x),
        r2=explained(target, residuals),
        residual=float(np.sqrt((residuals**2).sum() / (len(x) - 2))),
        between=float(np.sqrt(variance)),
        lack_of_fit=None if settings is None else lack_of_fit(x, target, settings, seeds),
        weights=weights,
    )


def log_design(x: FloatArray) -> FloatArray:
    """Return columns 1 and -ln x, (K, 2); ln x counted from its middle, so that the two do not go together."""
    logs = np.log(x)
    return np.column_stack([np.ones(len(x)), -(logs - _middle(x))])


def _with_levels(design: FloatArray, seeds: Sequence[Hashable]) -> FloatArray:
    """Add a column for each seed but the first, unless too few points would be left to tell the scatter."""
    groups = groups_of(seeds)
    if len(seeds) - design.shape[1] - (len(groups) - 1) < 1:
        return design
    return np.column_stack([design, *(np.isin(np.arange(len(seeds)), group) for group in groups[1:])]).astype(float)


def _middle(x: FloatArray) -> float:
    logs = np.log(x)
    return float((logs.min() + logs.max()) / 2.0)


def weighted_line(design: FloatArray, weights: FloatArray, targets: FloatArray) -> FloatArray:
    """Return coefficients of weighted least squares, (P,), or (P, R) of targets (K, R); ``design`` is (K, P)."""
    weighted = design.T * weights
    return np.asarray(np.linalg.solve(weighted @ design, weighted @ targets))


def law_of(line: FloatArray, x: FloatArray) -> PowerLaw:
    """Return the law of a line in the columns of `log_design` of ``x``."""
    level = float(line[0] + line[1] * _middle(x))
    return PowerLaw(float(np.exp(np.clip(level, -LARGEST, LARGEST))), float(line[1]))


def explained(target: FloatArray, residuals: FloatArray) -> float:
    """Return R squared, unweighted."""
    total = float(((target - target.mean()) ** 2).sum())
    return 1.0 if total == 0.0 else 1.0 - float((residuals**2).sum()) / total


def lack_of_fit(
    x: FloatArray, target: FloatArray, settings: Sequence[Hashable], seeds: Sequence[Hashable] | None = None
) -> float | None:
    """Return P-value of the F-test of a straight line in ln x against a mean for every setting.

    The error is the deviation from the means of the settings (Draper and Smith 1998, 2.1). Where the same ``seeds``
    are in every setting they are blocks: their means are taken out of the error as well.

    Args:
        x: (K,) above zero.
        target: (K,) ln y.
        settings: (K,) equal for replicates; different ones may have equal x.
        seeds: (K,) equal for points that share part of their deviation; None: none do.

    Returns:
        None without replicates, with too few different x, or where replicates are equal to the last digits.
    """
    groups = groups_of(settings)
    n, k = len(x), len(groups)
    if n == k or len(np.unique(x)) < LEAST:
        return None
    within = np.array(target, dtype=np.float64)
    for group in groups:
        within[group] -= target[group].mean()
    design = log_design(x)
    residuals = target - design @ weighted_line(design, np.ones(n), target)
    bent = max(0.0, float((residuals**2).sum()) - float((within**2).sum())) / (k - 2)
    free = n - k
    if seeds is not None and _crossed(groups, seeds):
        blocks = groups_of(seeds)
        for block in blocks:
            within[block] -= within[block].mean()
        free -= len(blocks) - 1
    error = float((within**2).sum())
    if error <= _ROUNDING * n:
        return None
    return float(f_distribution.sf(bent / (error / free), k - 2, free))


def _crossed(groups: Sequence[Sequence[int]], seeds: Sequence[Hashable]) -> bool:
    """Return True if every setting has the same seeds, each once."""
    rows = [[seeds[i] for i in group] for group in groups]
    return all(len(row) == len(set(row)) and set(row) == set(rows[0]) for row in rows)


def best_fit(
    residuals: Callable[[FloatArray], FloatArray],
    jacobian: Callable[[FloatArray], FloatArray],
    beginnings: Sequence[FloatArray],
    bounds: tuple[FloatArray, FloatArray],
    *,
    again: bool,
) -> Any:
    """Return the best fit by `scipy.optimize.least_squares` from several starts.

    Args:
        residuals: of the parameters.
        jacobian: of the residuals.
        beginnings: where the search starts, within the bounds.
        bounds: lowest and highest parameters.
        again: whether a resample is fitted, from the fit of the whole: coarser, and with fewer steps.
    """
    tolerance, steps = (1e-9, 50) if again else (1e-14, 500)
    fits = [
        least_squares(
            residuals, begin, jacobian, bounds=bounds, xtol=tolerance, ftol=tolerance, gtol=tolerance, max_nfev=steps
        )
        for begin in beginnings
    ]
    return min(fits, key=lambda result: float(result.cost))
