"""The evaluator `divergence`."""

from __future__ import annotations

from truesource.evaluators.divergence.settings import DivergenceSettings
from truesource.run.evaluator import Evaluator

DIVERGENCE = Evaluator(
    name="divergence",
    title="Full distributions",
    summary="Compare all next-token probabilities of a model with the true ones.",
    package=__name__,
    settings=DivergenceSettings,
)
