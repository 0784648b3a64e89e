"""Sums over pairs that every measure is a ratio of, so that resampling them is one product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evaluation.measures.bootstrap import TAILS, resampled_sums
from evaluation.pairs.proportions import proportion

FloatArray = NDArray[np.float64]
FEWEST = 10  #: sources that an interval of a bootstrap needs
TIE = 1e-9  #: nats; log odds nearer to zero prefer neither side

COLUMNS = (
    *("decided", "correct", "unigram_decided", "unigram_correct"),
    *("finite", "model_truth", "truth_truth", "model_model", "distance"),
    *("pairs", "choice", "choice_truth", "choice_error"),
    *("contexts", "context", "context_truth"),
)

#: each measure as numerator and denominator; ``correlation`` is made of three sums
RATIOS = {
    "accuracy": ("correct", "decided"),
    "unigram_accuracy": ("unigram_correct", "unigram_decided"),
    "slope": ("model_truth", "truth_truth"),
    "log_odds_error": ("distance", "finite"),
    "choice": ("choice", "pairs"),
    "choice_truth": ("choice_truth", "pairs"),
    "choice_error": ("choice_error", "pairs"),
    "context": ("context", "contexts"),
    "context_truth": ("context_truth", "contexts"),
}
PROPORTIONS = ("accuracy", "unigram_accuracy")  #: with intervals of proportions
MEASURES = ("accuracy", "unigram_accuracy", "correlation", *(name for name in RATIOS if "accuracy" not in name))


def pair_sums(truth: FloatArray, model: FloatArray, unigram: FloatArray) -> FloatArray:
    """What each pair adds to every sum, (P, K) in the order of ``COLUMNS``.

    Which sentence of a pair is named first is arbitrary. So correlation and slope count every pair in both orders,
    which makes their means zero: ``sum x y / sqrt(sum x^2 sum y^2)`` and ``sum x y / sum x^2``. Probabilities of a
    choice, ``sigma(log odds)``, are of the sentence that the truth prefers, 0.5 where it prefers none. Odds with an
    infinity count for accuracies and choices only; so do pairs of which the model can make neither sentence, as pairs
    of which it prefers none.

    Args:
        truth: (P,) log odds of the truth, nats; infinite where it cannot make one side.
        model: (P,) of the model; infinite where it cannot make one side, NaN where it can make neither.
        unigram: (P,) of word frequencies; NaN where unknown.
    """
    prefers = preferred(truth)
    chance = np.where(np.isnan(model), 0.5, expit(model))
    decided = prefers != 0.0
    finite = np.isfinite(truth) & np.isfinite(model)
    x, y = (np.where(finite, side, 0.0) for side in (truth, model))
    known = finite & decided & np.isfinite(unigram)
    u = np.where(np.isfinite(unigram), unigram, 0.0)
    side = np.where(decided, prefers, 1.0)
    columns = {
        "decided": decided,
        "correct": decided * _right(preferred(model), prefers),
        "unigram_decided": decided & np.isfinite(unigram),
        "unigram_correct": decided * np.isfinite(unigram) * _right(preferred(u), prefers),
        "finite": finite,
        "model_truth": x * y,
        "truth_truth": x * x,
        "model_model": y * y,
        "distance": np.abs(x - y),
        "pairs": np.ones(len(truth)),
        "choice": np.where(decided & ~np.isnan(model), expit(side * model), 0.5),
        "choice_truth": np.where(decided, expit(side * truth), 0.5),
        "choice_error": np.abs(chance - expit(truth)),
        "contexts": known,
        "context": known * side * (y - u),
        "context_truth": known * side * (x - u),
    }
    return np.stack([np.asarray(columns[name], dtype=np.float64) for name in COLUMNS], axis=1)


def preferred(odds: FloatArray) -> FloatArray:
    """1 where log odds prefer the first side, -1 where the second, 0 where neither, or where they are NaN."""
    return np.where(np.isnan(odds) | (np.abs(odds) <= TIE), 0.0, np.sign(odds))


def _right(own: FloatArray, prefers: FloatArray) -> FloatArray:
    """1 where the same side is preferred, 0.5 where ``own`` is none."""
    return np.where(own == 0.0, 0.5, own == prefers)


def by_source(values: FloatArray, source: Sequence[int]) -> FloatArray:
    """Sums over pairs of one source, (N, K)."""
    _, row = np.unique(np.asarray(source, dtype=np.int64), return_inverse=True)
    sums = np.zeros((int(row.max()) + 1, values.shape[1]))
    np.add.at(sums, row, values)
    return sums


class Found(NamedTuple):
    """A value with its 95% interval; none of a bootstrap over fewer than `FEWEST` sources."""

    value: float
    low: float | None = None
    high: float | None = None


def measures(sums: FloatArray, names: Sequence[str] = MEASURES, *, seed: int) -> dict[str, Found]:
    """Measures with 95% intervals; those that nothing is known of are left out.

    Accuracies have intervals of proportions, see `evaluation.pairs.proportions`; the others those of a bootstrap.

    Args:
        sums: (N, K), see `by_source`.
        names: of measures.
        seed: of the resampling of sources.
    """
    resampled = any(name not in PROPORTIONS for name in names)
    drawn = resampled_sums(sums, seed=seed) if resampled else np.empty((0, sums.shape[1]))
    found: dict[str, Found] = {}
    for name in names:
        if name in PROPORTIONS:
            right, counted = (sums[:, COLUMNS.index(part)] for part in RATIOS[name])
            share = proportion(right, counted)
            if share is not None:
                found[name] = Found(*share)
            continue
        value, values = _measure(name, sums.sum(axis=0)[None])[0], _measure(name, drawn)
        if np.isfinite(value):
            counted = sums[:, COLUMNS.index("truth_truth" if name == "correlation" else RATIOS[name][1])]
            enough = int((counted > 0.0).sum()) >= FEWEST
            found[name] = Found(float(value), *(np.nanquantile(values, TAILS).tolist() if enough else ()))
    return found


def _measure(name: str, sums: FloatArray) -> FloatArray:
    """One measure of each row of sums, NaN where its denominator is zero."""
    column = {key: sums[:, i] for i, key in enumerate(COLUMNS)}
    if name == "correlation":
        above, below = column["model_truth"], np.sqrt(column["truth_truth"] * column["model_model"])
    else:
        above, below = (column[part] for part in RATIOS[name])
    return np.asarray(np.divide(above, below, out=np.full(len(sums), np.nan), where=below > 0.0))
