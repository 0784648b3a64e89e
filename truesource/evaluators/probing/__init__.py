"""The evaluator `probing`."""

from __future__ import annotations

from truesource.evaluators.probing.settings import ProbingSettings
from truesource.run.evaluator import Evaluator

PROBING = Evaluator(
    name="probing",
    title="What the layers know",
    summary="Train linear probes on the layers of a network.",
    package=__name__,
    settings=ProbingSettings,
)
