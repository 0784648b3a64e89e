"""The evaluator `divergence`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from truesource.evaluation.divergence import BY, By
from truesource.grammar.support.settings import Settings
from truesource.run.evaluator import Evaluator


class DivergenceSettings(Settings):
    """All next-token probabilities of a model compared with the true ones; see docs/howto/models.md."""

    sentences: int | None = Field(300, ge=2, description="Number of sentences to use, from the first.")
    top_k: int = Field(10, ge=1, description="Number of most probable tokens that are compared as a set.")
    by: tuple[By, ...] = Field(BY, description="Break the divergence down by position, length, class, frequency.")
    classes: Path | None = Field(None, description="File that maps tags to classes (default: Penn Treebank tags).")


DIVERGENCE = Evaluator(
    name="divergence",
    title="Full distributions",
    summary="Compare all next-token probabilities of a model with the true ones.",
    package=__name__,
    settings=DivergenceSettings,
)
