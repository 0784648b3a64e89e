"""The evaluator `explain`: reasons for the divergence of a model, and the most helpful change."""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import Field, model_validator

from truesource.evaluation.core.evaluator import Evaluator
from truesource.grammar.support.settings import Settings
from truesource.lmtrain.levers import LEVERS, LeverName


class ExplainSettings(Settings):
    """Settings of the explanation of why models are off; see docs/howto/explain.md."""

    advanced: ClassVar = frozenset({"lines", "starts"})
    sentences: int | None = Field(1000, ge=2, description="Number of sentences to use, from the first.")
    levers: tuple[LeverName, ...] = Field(
        LEVERS, description="Levers to try: data, targets, steps, width, layers, context, tokenizer."
    )
    budget: float = Field(
        15.0, ge=0.0, description="Minutes for all trainings, cheapest first; trainings that do not fit are skipped."
    )
    trainings: int = Field(1, ge=1, description="Number of seeds to train the model and each lever with.")
    lines: int = Field(4, ge=0, le=20, description="Also show the best predictors that see 0, 1, ..., N - 1 words.")
    starts: int = Field(
        0, ge=0, description="Random starts of EM without trees, for the floor of the data; slow for large grammars."
    )

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        if len(set(self.levers)) < len(self.levers):
            raise ValueError("levers: name each lever once")
        return self


EXPLAIN = Evaluator(
    name="explain",
    title="Why the models are off",
    summary="Explain why a model is off, and what would help most.",
    settings=ExplainSettings,
    code=f"{__package__}.report",
    verb="explain",
    declared=False,
)
