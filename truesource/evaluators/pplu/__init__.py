"""The evaluator `pplu`."""

from __future__ import annotations

from truesource.evaluators.pplu.settings import PpluSettings
from truesource.run.evaluator import Evaluator

PPLU = Evaluator(
    name="pplu",
    title="What models know of context (PPLu)",
    summary="Measure what a model knows of context beyond word frequencies (PPLu).",
    package=__name__,
    settings=PpluSettings,
)
