"""Reliability of a model's probabilities against the true ones: exact, where others only have outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from truesource.grammar.support.arrays import FloatArray

LOW = -24.0  #: ln Q below which all events share the first bin
BINS = 96  #: a quarter of a nat each
TOP_BINS = 15  #: equally wide ones, as Guo et al. (2017) use


@dataclass(frozen=True, eq=False)
class Reliability:
    """Histograms that events are added to as they stream by; they do not grow."""

    low: float = LOW  #: ln Q at the lower end of the first bin, nats
    step: float = -LOW / BINS  #: width of a bin, nats
    bins: FloatArray = field(default_factory=lambda: np.zeros((BINS, 3)))  #: (B, 3) events, sum of Q, sum of P
    top: FloatArray = field(default_factory=lambda: np.zeros((TOP_BINS, 3)))  #: (T, 3) contexts by the largest Q

    def add_top(self, confidence: FloatArray, truth: FloatArray, weight: FloatArray) -> None:
        """Add contexts by Q of the model's most probable event, with the true probability of that event."""
        at = np.minimum((confidence * len(self.top)).astype(np.int64), len(self.top) - 1)
        for column, values in enumerate((weight, weight * confidence, weight * truth)):
            np.add.at(self.top[:, column], at, values)

    @property
    def contexts(self) -> float:
        """Contexts that were added."""
        return float(self.top[:, 0].sum())

    def curve(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean Q, mean P and number of events of each bin that has any, (B',) each."""
        kept = self.bins[self.bins[:, 0] > 0.0]
        return kept[:, 1] / kept[:, 0], kept[:, 2] / kept[:, 0], kept[:, 0]

    @property
    def error(self) -> float:
        """Expected calibration error over all events: half the sum of ``|mass of Q - mass of P|`` of the bins, 0 to 1.

        Per context, so it is at most the mean total variation: the part of it that bins of equal Q show.
        """
        return float(0.5 * np.abs(self.bins[:, 1] - self.bins[:, 2]).sum() / self.contexts)

    @property
    def top_error(self) -> float:
        """Expected calibration error of the most probable event, 0 to 1.

        Guo et al. (2017), equation 3, with the true probability in place of outcomes.
        """
        return float(np.abs(self.top[:, 1] - self.top[:, 2]).sum() / self.contexts)
