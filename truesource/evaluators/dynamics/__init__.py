"""The evaluator `dynamics`."""

from __future__ import annotations

from truesource.evaluators.dynamics.settings import DynamicsSettings
from truesource.run.evaluator import Evaluator

DYNAMICS = Evaluator(
    name="dynamics",
    title="What is learned when",
    summary="Compare the snapshots of a model with the truth.",
    package=__name__,
    settings=DynamicsSettings,
)
