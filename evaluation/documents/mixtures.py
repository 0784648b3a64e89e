"""The mixture of some exact predictors that is nearest to a model, and how sure its weights are.

Weights minimise the sum of KL(model || mixture) over positions, which is convex. They are found by Newton's method, of
which each step is a quadratic problem on the simplex, solved face by face.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from truesource.evaluation.measures.bootstrap import resampled_sums
from truesource.grammar.support.arrays import FloatArray, IntArray

STEPS = 100  #: most of Newton's method
ENOUGH = 1e-12  #: bound on what a better mixture would gain, as a share of all, at which the search ends
LARGEST = 8  #: most predictors
#: weights between which weights of resampled documents are interpolated; close together near 0 and 1
GRID = 0.5 - 0.5 * np.cos(np.pi * np.linspace(0.0, 1.0, 201))
LEAST = 1e-9  #: least probability of a mixture that a slope is divided by
PART = 4096  #: positions that are summed at once


def nearest(exact: FloatArray, q: FloatArray) -> FloatArray:
    """Return the weights of the mixture that is nearest to a model, (M,).

    Args:
        exact: (M, T, E) probabilities of the predictors.
        q: (T, E) of the model; events that no predictor allows do not count.
    """
    q = np.where(exact.sum(axis=0) > 0.0, q, 0.0)
    mass = q.sum()
    weight = np.full(len(exact), 1.0 / len(exact))
    if len(exact) == 1 or mass == 0.0:
        return weight
    value = _value(exact, q, weight)
    for _ in range(STEPS):
        slope, bend = (part.sum(axis=0) for part in _derivatives(exact, q, weight, np.array([0])))
        if slope.max() - mass <= ENOUGH * mass:  # it is concave, and weight @ slope is the mass
            break
        step = best_on_simplex(slope[None], bend[None], weight)[0] - weight
        while (improved := _value(exact, q, weight + step)) < value - ENOUGH * mass:
            step = 0.5 * step
        weight, value = np.maximum(weight + step, 0.0), improved
        if np.abs(step).max() < ENOUGH:
            break
    return np.asarray(weight / weight.sum())


def intervals(
    exact: FloatArray, q: FloatArray, starts: IntArray, weight: FloatArray, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return ends of the 95% intervals of the weights, (M,) each, with documents drawn again.

    Of two predictors, each resample has the weight at which its slope is 0. Of more, it has the best weights by the
    first two derivatives at ``weight``.

    Args:
        exact: as `nearest`.
        q: as `nearest`.
        starts: (D,) first position of each document.
        weight: (M,) of all documents, by `nearest`.
        seed: of the resampling.
    """
    if len(exact) == 2:
        first = crossings(resampled_sums(slopes(exact, q, starts), seed=seed))
        resamples = np.stack([first, 1.0 - first], axis=1)
    else:
        slope, bend = _derivatives(exact, np.where(exact.sum(axis=0) > 0.0, q, 0.0), weight, starts)
        m = len(exact)
        sums = resampled_sums(np.concatenate([slope, bend.reshape(len(starts), m * m)], axis=1), seed=seed)
        resamples = best_on_simplex(sums[:, :m], sums[:, m:].reshape(-1, m, m), weight)
    low, high = np.percentile(resamples, [2.5, 97.5], axis=0, method="inverted_cdf")
    return low, high


def _value(exact: FloatArray, q: FloatArray, weight: FloatArray) -> float:
    """Return the sum of q ln(mixture); -inf if it has no probability that the model has."""
    mixture = np.tensordot(weight, exact, axes=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(q > 0.0, q * np.log(mixture), 0.0).sum())


def _derivatives(
    exact: FloatArray, q: FloatArray, weight: FloatArray, starts: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return first and second derivatives of `_value` by the weights, by document, (D, M) and (D, M, M)."""
    m, t = len(exact), len(q)
    first, second = np.empty((t, m)), np.empty((t, m, m))
    for at in range(0, t, PART):
        part = slice(at, at + PART)
        mixture = np.maximum(np.tensordot(weight, exact[:, part], axes=1), LEAST)
        share = exact[:, part] / mixture
        first[part] = np.einsum("mte,te->tm", share, q[part])
        second[part] = -np.einsum("mte,nte,te->tmn", share, share, q[part], optimize=True)
    return np.add.reduceat(first, starts, axis=0), np.add.reduceat(second, starts, axis=0)


def best_on_simplex(slope: FloatArray, bend: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the weights, (R, M), at which each of some concave quadratic functions is greatest.

    Args:
        slope: (R, M) first derivatives at ``weight``.
        bend: (R, M, M) second ones.
        weight: (M,) of the simplex.
    """
    r, m = slope.shape
    scale = np.maximum(np.abs(bend).max(axis=(1, 2)), LEAST)
    bend = bend - (1e-12 * scale)[:, None, None] * np.eye(m)  # two predictors may be the same
    linear = slope - bend @ weight
    best, weights = np.full(r, -np.inf), np.tile(weight, (r, 1))
    for face in _faces(m):
        k = len(face)
        system = np.zeros((r, k + 1, k + 1))
        system[:, :k, :k] = bend[:, face][:, :, face] / scale[:, None, None]
        system[:, k, :k] = system[:, :k, k] = 1.0
        right = np.concatenate([-linear[:, face] / scale[:, None], np.ones((r, 1))], axis=1)
        w = np.zeros((r, m))
        w[:, face] = np.linalg.solve(system, right[:, :, None])[:, :k, 0]
        value = (linear * w).sum(axis=1) + 0.5 * np.einsum("rm,rmn,rn->r", w, bend, w)
        better = (w >= -1e-12).all(axis=1) & (value > best)
        best[better], weights[better] = value[better], np.maximum(w[better], 0.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _faces(m: int) -> Iterator[list[int]]:
    """Yield all sets of some of m predictors."""
    for size in range(m, 0, -1):
        yield from map(list, combinations(range(m), size))


def slopes(exact: FloatArray, q: FloatArray, starts: IntArray) -> FloatArray:
    """Return derivative of the sum of q ln(mixture) by the weight of the first of two predictors, at `GRID`, (D, G).

    It is summed over each document, and falls with the weight; over all documents it is 0 at the nearest mixture.

    Args:
        exact: (2, T, E) as `nearest`.
        q: as `nearest`.
        starts: (D,) first position of each document.
    """
    first, second = exact
    rows = []
    for weight in GRID.tolist():
        mixture = np.maximum(second + weight * (first - second), LEAST)
        rows.append((q * (first - second) / mixture).sum(axis=1))
    return np.asarray(np.add.reduceat(np.stack(rows, axis=1), starts, axis=0))


def crossings(slopes: FloatArray) -> FloatArray:
    """Return the weight at which each row of slopes, (R, G), is 0; 0 or 1 if it is so nowhere, (R,)."""
    above = (slopes > 0.0).sum(axis=1)
    at = np.clip(above, 1, len(GRID) - 1)
    rows = np.arange(len(slopes))
    before, after = slopes[rows, at - 1], slopes[rows, at]
    fall = np.where(before > after, before - after, 1.0)
    inside = GRID[at - 1] + np.clip(before / fall, 0.0, 1.0) * (GRID[at] - GRID[at - 1])
    return np.where(above == 0, 0.0, np.where(above == len(GRID), 1.0, inside))
