"""What trains a probe, as measuring sees it; the suite's own is in the package of language models."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.support.arrays import FloatArray

Vectors = NDArray[np.floating]


class Probe(Protocol):
    """A trained probe."""

    @property
    def weight_decay(self) -> float:
        """That it was trained with."""

    @property
    def dev_loss(self) -> float:
        """Cross-entropy on the dev part, nats."""

    def log_probs(self, x: Vectors) -> FloatArray:
        """Log probability of each label, (N, C) nats, for vectors (N, D)."""


class ProbeTrainer(Protocol):
    """Trains one."""

    def __call__(self, x: Vectors, targets: FloatArray, dev_x: Vectors, dev_targets: FloatArray) -> Probe:
        """From vectors (N, D) and label probabilities (N, C), and those of a dev part, to choose the decay by."""
