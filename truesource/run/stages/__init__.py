"""Stages of evaluators in a run; a declared evaluator has one for each model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from truesource.run.stages import declared

if TYPE_CHECKING:
    from truesource.evaluation.core.evaluator import Evaluator
    from truesource.run.config import RunConfig
    from truesource.run.stage import Stage

#: modules with ``stages(config)`` of the other evaluators, by name
STAGES = {
    "explain": f"{__name__}.explain.stage",
    "naturalness": f"{__name__}.naturalness",
    "pairs": f"{__name__}.pairs",
    "tendencies": f"{__name__}.tendencies",
    "tokenisation": f"{__name__}.tokenisation",
    "treebank_baseline": f"{__name__}.treebank_baseline",
}


def stages_of(evaluator: Evaluator, config: RunConfig) -> list[Stage]:
    """Return the steps of a requested evaluator in a run."""
    if evaluator.declared:
        return declared.stages_of(evaluator, config)
    stages: list[Stage] = import_module(STAGES[evaluator.name]).stages(config)
    return stages
