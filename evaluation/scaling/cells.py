"""Cells of a sweep as fits see them: settings, cost, losses on the same sentences, and how equal cells scatter.

Seeds are crossed with corpus sizes: cells of one shape and seed start from the same weights at every corpus size, and
their deviations go together, the more the nearer the sizes. So the seeds of a shape are drawn whole. Shapes share
nothing but the number of a seed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.stats import chi2

from truesource.evaluation.measures.bootstrap import REPLICATES, resampled_sums
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import too_few

Axis = Literal["sentences", "parameters", "parameters_without_embeddings", "flops"]
AXES: tuple[Axis, ...] = ("sentences", "parameters", "parameters_without_embeddings", "flops")
TITLES: dict[Axis, str] = {
    "sentences": "sentences",
    "parameters": "parameters",
    "parameters_without_embeddings": "parameters without embeddings",
    "flops": "FLOPs of training",
}
FURTHEST = 50.0  #: most that ln KL is moved: far outside of any 95% interval, and its exponential is a number


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
        """Where it stands on an axis."""
        return float(getattr(self, axis))

    def held(self, axis: Axis) -> str:
        """What is the same in all cells that a fit over ``axis`` takes together with this one."""
        return self.model if axis == "sentences" else f"{self.sentences:,} sentences"

    def varied(self, axis: Axis) -> str | int:
        """What differs between the settings of such a fit."""
        return self.sentences if axis == "sentences" else self.model


@dataclass(frozen=True)
class Losses:
    """Summed over the scored positions of each of N sentences, for C models; nats."""

    excess: FloatArray  #: (C, N) ln P - ln Q of each model
    truth: FloatArray  #: (N,) -ln P
    counts: FloatArray  #: (N,) scored positions

    def __post_init__(self) -> None:
        n = len(self.counts)
        if self.excess.ndim != 2 or self.excess.shape[1] != n or self.truth.shape != (n,):
            raise ValueError(f"expecting excess (C, {n}) and truth ({n},), got {self.excess.shape}, {self.truth.shape}")
        if not np.isfinite(self.excess).all():
            raise InputError("a model gives one of the sentences no probability, so its loss is infinite")

    @property
    def reducible(self) -> FloatArray:
        """Estimated KL(P || Q) of each model, nats a token, (C,): its loss less that of the truth."""
        return np.asarray(self.excess.sum(axis=1) / self.counts.sum())

    @property
    def irreducible(self) -> float:
        """Loss of the truth, nats a token: the cross-entropy that no model can go below, on these sentences."""
        return float(self.truth.sum() / self.counts.sum())

    @property
    def too_few(self) -> bool:
        """Whether so few sentences count that there are no intervals."""
        return too_few(int((self.counts > 0.0).sum()))

    def take(self, rows: Sequence[int]) -> Losses:
        """Only some of the models."""
        return Losses(self.excess[list(rows)], self.truth, self.counts)


@dataclass(frozen=True)
class Resampled:
    """Replicates of the losses of `Losses`, R of them; NaN where a reducible loss came out at zero or below."""

    reducible: FloatArray  #: (R, C)
    irreducible: FloatArray  #: (R,)
    few: bool = False  #: so few sentences count that there are no intervals

    @property
    def whole(self) -> BoolArray:
        """Replicates in which every reducible loss is above zero, (R,)."""
        return np.asarray(np.isfinite(self.reducible).all(axis=1))

    def take(self, rows: Sequence[int]) -> Resampled:
        """Only some of the models."""
        return replace(self, reducible=self.reducible[:, list(rows)])

    def shifted(self, logs: FloatArray) -> Resampled:
        """With something added to the logarithm of each reducible loss, (R, C)."""
        return replace(self, reducible=self.reducible * np.exp(logs))


def resample(losses: Losses, *, seed: int, replicates: int = REPLICATES) -> tuple[Resampled, FloatArray]:
    """Bootstrap over evaluation sentences, drawn with replacement, the same for all models and the truth.

    Args:
        losses: of C models.
        seed: of the resampling.
        replicates: R.

    Returns:
        The replicates, and the standard deviation of ln KL of each model by sentences alone, (C,).
    """
    sums = resampled_sums(
        np.column_stack([losses.excess.T, losses.truth, losses.counts]), seed=seed, replicates=replicates
    )
    values = sums[:, :-1] / sums[:, -1:]
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.where(values[:, :-1] > 0.0, np.log(values[:, :-1]), np.nan)
    return Resampled(np.exp(logs), values[:, -1], losses.too_few), _deviation(logs)


def groups_of(settings: Sequence[Hashable]) -> list[list[int]]:
    """Row numbers of equal settings, in order of first appearance."""
    found: dict[Hashable, list[int]] = {}
    for row, key in enumerate(settings):
        found.setdefault(key, []).append(row)
    return list(found.values())


def _deviation(logs: FloatArray) -> FloatArray:
    """Standard deviation of each column, its NaN left out; 0 where fewer than two values are left."""
    there = np.isfinite(logs)
    n = np.maximum(there.sum(axis=0), 1)
    kept = np.where(there, logs, 0.0)
    mean = kept.sum(axis=0) / n
    squares = np.where(there, (logs - mean) ** 2, 0.0)
    return np.asarray(np.sqrt(squares.sum(axis=0) / n))


@dataclass(frozen=True)
class Scatter:
    """Of ln KL between K cells that a law does not tell apart."""

    replicated: bool  #: from seeds of equal settings; False: there are none, it is the scatter around the law
    moves: FloatArray  #: (M, K) of ln KL, each times a standard normal number
    free: int  #: degrees of freedom that their size is estimated with, 1 or more


def scatter_of(cells: Sequence[ScalingCell], target: FloatArray, residuals: FloatArray, parameters: int) -> Scatter:
    """Estimate the scatter of the cells of a fit.

    Where seeds of a shape are at several corpus sizes, a move is the deviation of one seed from the means of the
    sizes, over sqrt(r (r - 1)) for r seeds: any linear estimate from the means then varies as it does from seed to
    seed, whatever goes together, with r - 1 degrees of freedom for each shape, added up over shapes. A missing cell
    is filled in with the sum of its size's and its seed's effects by least squares. Elsewhere cells are moved alone,
    with one standard deviation in all: that within settings, or, where no setting has two seeds, that around the law.

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
    found = [_whole_seeds([cells[i] for i in rows], target[rows]) for rows in shapes]
    whole = [moves for moves in found if moves is not None]
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
    """What to add to each ln KL in each replicate, (R, K).

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
    drawn = stretch[:, None] * (rng.normal(size=(replicates, len(scatter.moves))) @ scatter.moves)
    return np.asarray(np.clip(drawn, -FURTHEST, FURTHEST))


def _alone(residuals: FloatArray, free: int) -> FloatArray:
    return np.asarray(np.sqrt((residuals**2).sum() / free) * np.eye(len(residuals)))


def _whole_seeds(cells: Sequence[ScalingCell], target: FloatArray) -> FloatArray | None:
    """Moves of the cells of one shape, (r, K); None where no seed is at several sizes, or not all are connected."""
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
