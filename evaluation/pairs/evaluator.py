"""The evaluator `pairs`."""

from __future__ import annotations

from truesource.evaluation.core.evaluator import Evaluator
from truesource.evaluation.pairs import PairSettings

PAIRS = Evaluator(
    name="pairs",
    title="Minimal pairs",
    summary="Score minimal pairs made from the grammar.",
    code=f"{__package__}.report",
    declared=False,
    of_corpus=False,
    settings=PairSettings,
)
