"""The evaluator `pairs`."""

from __future__ import annotations

from truesource.evaluators.pairs.settings import PairsSettings
from truesource.run.evaluator import Evaluator

PAIRS = Evaluator(
    name="pairs",
    title="Minimal pairs",
    summary="Score minimal pairs made from the grammar.",
    package=__name__,
    settings=PairsSettings,
)
