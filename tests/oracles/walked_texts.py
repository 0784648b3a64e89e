"""Texts read piece by piece."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truesource.generator.piece_model import IncrementalScorer
from truesource.grammar.support.arrays import IntArray


def walked(scorer: IncrementalScorer, rows: Sequence[IntArray] | Sequence[Sequence[int]]) -> list[float]:
    """Log probability of each row of tokens and the end after it, nats, one row after the other."""
    found = []
    for row in rows:
        at, total = np.array([scorer.begin()]), 0.0
        for token in row:
            total += scorer.log_prob(at, np.array([token])).item()
            at = scorer.extend(at, np.array([token]))
        found.append(total + scorer.log_end(at).item())
    return found
