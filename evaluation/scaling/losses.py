"""Losses of trained models on the same sentences, and their resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from truesource.evaluation.measures.bootstrap import REPLICATES, resampled_sums
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import too_few


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
        """Estimated KL(P || Q) of each model, nats a token, (C,): its loss less the loss of the truth."""
        return np.asarray(self.excess.sum(axis=1) / self.counts.sum())

    @property
    def irreducible(self) -> float:
        """Loss of the truth, nats a token: the cross-entropy that no model can go below, on these sentences."""
        return float(self.truth.sum() / self.counts.sum())

    @property
    def too_few(self) -> bool:
        """True where so few sentences count that there are no intervals."""
        return too_few(int((self.counts > 0.0).sum()))

    def take(self, rows: Sequence[int]) -> Losses:
        """Select some of the models."""
        return Losses(self.excess[list(rows)], self.truth, self.counts)


@dataclass(frozen=True)
class ResampledLosses:
    """Replicates of the losses of `Losses`, R of them; NaN if a reducible loss came out at zero or below."""

    reducible: FloatArray  #: (R, C)
    irreducible: FloatArray  #: (R,)
    few: bool = False  #: so few sentences count that there are no intervals

    @property
    def whole(self) -> BoolArray:
        """Replicates in which every reducible loss is above zero, (R,)."""
        return np.asarray(np.isfinite(self.reducible).all(axis=1))

    def take(self, rows: Sequence[int]) -> ResampledLosses:
        """Select some of the models."""
        return replace(self, reducible=self.reducible[:, list(rows)])

    def shifted(self, logs: FloatArray) -> ResampledLosses:
        """Add something to the logarithm of each reducible loss, (R, C)."""
        return replace(self, reducible=self.reducible * np.exp(logs))


def resample(losses: Losses, *, seed: int, replicates: int = REPLICATES) -> tuple[ResampledLosses, FloatArray]:
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
    return ResampledLosses(np.exp(logs), values[:, -1], losses.too_few), _deviation(logs)


def _deviation(logs: FloatArray) -> FloatArray:
    """Return the standard deviation of each column without NaN; 0 for fewer than two numbers."""
    there = np.isfinite(logs)
    n = np.maximum(there.sum(axis=0), 1)
    finite = np.where(there, logs, 0.0)
    mean = finite.sum(axis=0) / n
    squares = np.where(there, (logs - mean) ** 2, 0.0)
    return np.asarray(np.sqrt(squares.sum(axis=0) / n))
