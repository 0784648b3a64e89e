"""The evaluator `pairs`."""

from __future__ import annotations

from truesource.evaluation.pairs import PairSettings
from truesource.run.evaluator import Evaluator

PAIRS = Evaluator(
    name="pairs",
    title="Minimal pairs",
    summary="Score minimal pairs made from the grammar.",
    package=__name__,
    settings=PairSettings,
)
