"""The evaluator `pplu`."""

from __future__ import annotations

from truesource.evaluators.pplu.settings import PpluSettings
from truesource.run.evaluator import Evaluator

PPLU = Evaluator(
    name="pplu",
    title="Perplexity over that of word frequencies (PPLu)",
    summary="Divide perplexity by that of word frequencies.",
    package=__name__,
    settings=PpluSettings,
)
