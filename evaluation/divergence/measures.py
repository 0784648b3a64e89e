"""Measures of two distributions over the same events, one row each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from truesource.evaluation.divergence.calibration import Reliability
from truesource.grammar.support.arrays import FloatArray, IntArray

#: Columns of `DivergenceRows.values`; P is the truth, Q the model. What a model gives to tokens that no sentence has
#: (``special_mass``) counts against it in ``kl``, and is one more event in ``js`` and ``tv``, where the truth has
#: probability 0. ``reverse_kl`` and ``entropy_model`` are of Q over the events alone, made to sum to one: what
#: sampling draws from.
NAMES = (
    "kl",  # KL(P || Q), nats; inf where Q is 0 and P is not
    "reverse_kl",  # KL(Q || P), nats; inf where P is 0 and Q is not
    "reverse_kl_possible",  # KL(Q given that the truth allows the event || P), nats
    "js",  # Jensen-Shannon divergence, nats, 0 to ln 2
    "tv",  # total variation, 0 to 1
    "entropy_truth",  # nats
    "entropy_model",  # nats; NaN where Q gives no event any probability
    # share of the most probable events of Q, one unless some are tied, that are most probable under P: 1 where Q picks
    # any of those that P ties, 1/2 where Q ties two of which P prefers one. Within 1e-9 nats is a tie
    "agreement",
    # share of the k most probable events of Q (no more than P allows) that are among those of P; where P ties for the
    # last places, any of the tied will do
    "top_k_overlap",
    "special_mass",  # what Q gives to no event
    "impossible_mass",  # what Q gives to events where P is 0
    "confidence",  # Q of its most probable event
    "confidence_truth",  # P of that event
)


class DivergenceRows(NamedTuple):
    """What is measured in W contexts."""

    values: FloatArray  #: (W, 13) columns are `NAMES`
    share: FloatArray  #: (W, G) P of each group of events
    grouped: FloatArray  #: (W, G) sum of P (ln P - ln Q) over each group; rows sum to ``kl``


def measure_rows(
    truth: FloatArray,
    model: FloatArray,
    *,
    top: int = 10,
    groups: IntArray | None = None,
    weight: FloatArray | None = None,
    reliability: Reliability | None = None,
) -> DivergenceRows:
    """Compare two blocks of distributions row by row.

    Args:
        truth: (W, E) ln P, nats; -inf where impossible.
        model: (W, E) ln Q, nats; rows may sum to less than one.
        top: size of the sets of most probable events, at least 1; ties of the model go to the first.
        groups: (E,) group of each event, 0 and up; None: all are one group.
        weight: (W,) how often each row counts in ``reliability``.
        reliability: histogram to add the events to.
    """
    from truesource.evaluation.divergence._kernels.divergence import measure

    if truth.shape != model.shape or truth.ndim != 2 or truth.shape[1] == 0 or top < 1:
        raise ValueError(f"expecting two (W, E) arrays and top >= 1, got {truth.shape}, {model.shape} and {top}")
    if groups is None:
        groups = np.zeros(truth.shape[1], dtype=np.int64)
    weight = np.ones(len(truth)) if weight is None else weight
    reliability = Reliability() if reliability is None else reliability
    values, share, grouped = measure(
        np.ascontiguousarray(truth, dtype=np.float64),
        np.ascontiguousarray(model, dtype=np.float64),
        top,
        groups,
        int(groups.max()) + 1,
        weight,
        reliability.low,
        reliability.step,
        reliability.bins,
    )
    confidence = NAMES.index("confidence")
    reliability.add_top(values[:, confidence], values[:, confidence + 1], weight)
    return DivergenceRows(values, share, grouped)
