"""The evaluator `dynamics`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from truesource.evaluation.dynamics import CurveSettings
from truesource.run.evaluator import Evaluator

if TYPE_CHECKING:
    from truesource.run.config import RunConfig


CurveMeasure = Literal["mean", "median", "kl"]


class DynamicsSettings(CurveSettings):
    """What models with snapshots learn when; see docs/howto/dynamics.md."""

    classes: Path | None = Field(None, description="File that maps tags to classes (default: Penn Treebank tags).")
    only: tuple[str, ...] = Field((), description="Classes to show in tables and figures (default: all).")
    measure: CurveMeasure = Field(
        "mean", description="What figures show: mean or median of ln Q - ln P, or the exact KL divergence."
    )
    sentences: int | None = Field(None, ge=2, description="Number of sentences to use, from the first (default: all).")

    @model_validator(mode="after")
    def _measured(self) -> Self:
        if self.measure == "kl" and not self.contexts:
            raise ValueError("measure: there is no exact KL divergence with contexts 0")
        return self


def check(config: RunConfig) -> None:
    """Refuse a configuration without what the evaluator needs, by a ValueError."""
    if not any(model.keeps_snapshots for model in config.models):
        raise ValueError("evaluation.dynamics needs a model with snapshots; set its training.snapshots to log")
    settings, frame = config.evaluation.of(DynamicsSettings), config.evaluation.frame
    if settings.tags == "paper" and config.corpus.trees == "none":
        raise ValueError("evaluation.dynamics.tags: paper needs corpus.trees; or take tags: drawn")
    if settings.measure == "kl" and frame != "default":
        raise ValueError(f"evaluation.dynamics.measure: there is no exact KL divergence in the frame {frame}")


DYNAMICS = Evaluator(
    name="dynamics",
    title="What is learned when",
    summary="Compare the snapshots of a model with the truth.",
    package=__name__,
    settings=DynamicsSettings,
)
