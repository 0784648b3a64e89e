"""How cells of equal settings scatter, and draws of what other seeds might have given.

Seeds are crossed with corpus sizes: cells of one shape and seed start from the same weights at every corpus size, and
their deviations go together, the more the nearer the sizes. So the seeds of a shape are drawn whole. Shapes share
nothing but the number of a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from truesource.evaluation.scaling.cells import ScalingCell
from truesource.evaluation.scaling.losses import groups_of
from truesource.grammar.support.arrays import FloatArray

FURTHEST = 50.0  #: most that ln KL is moved: far outside of any 95% interval, and its exponential is a number


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
