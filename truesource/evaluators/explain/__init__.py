"""The evaluator `explain`: why a model is off, and what would help most."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from truesource.grammar.support.settings import Settings
from truesource.lmtrain.levers import LEVERS, LeverName
from truesource.run.evaluator import Evaluator


class ExplainSettings(Settings):
    """Why models are off, and what would help most; see docs/howto/explain.md."""

    advanced: ClassVar = frozenset({"words"})
    sentences: int | None = Field(1000, ge=2, description="Number of sentences to use, from the first.")
    levers: tuple[LeverName, ...] = Field(
        LEVERS, description="What to try: data, targets, steps, width, layers, context, tokenizer; one training each."
    )
    budget: float = Field(
        15.0, ge=0.0, description="Minutes for all trainings; what does not fit is left out, the cheapest come first."
    )
    seeds: int = Field(1, ge=1, description="Number of training seeds of the model and of each lever.")
    words: int = Field(3, ge=0, le=20, description="Most words that the best predictors of the ladder see.")

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        if len(set(self.levers)) < len(self.levers):
            raise ValueError("levers: name each lever once")
        return self


EXPLAIN = Evaluator(
    name="explain",
    title="Why the models are off",
    summary="Find out why a model is off, and what would help most.",
    settings=ExplainSettings,
    package=__name__,
)
