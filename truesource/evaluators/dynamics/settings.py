"""What can be set of the evaluator `dynamics`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.evaluation.dynamics.derivations import Tags
from truesource.grammar.settings import Settings
from truesource.run.config import RunConfig


class DynamicsSettings(Settings):
    """What models with snapshots learn when, beside the truth; see docs/dynamics.md."""

    by: list[Literal["class", "length", "position", "frequency", "depth"]] = Field(
        ["class", "length", "position", "frequency", "depth"], min_length=1
    )
    tags: Tags = "expected"  #: posterior shares of each token, or tags of one derivation: ``paper`` or ``drawn``
    classes: str | None = None  #: file that maps tags to classes, relative to the configuration; None: Penn tags
    threshold: float = Field(0.2, gt=0.0, allow_inf_nan=False)  #: nats a token below which a class counts as learned
    contexts: int = Field(2000, ge=0)  #: positions for the exact divergence, about; 0: none
    sentences: int | None = Field(None, ge=2)  #: the first so many of the split; None: as all of the evaluation


def check(config: RunConfig) -> None:
    """Refuse a configuration without what the evaluator needs, by a ValueError."""
    if not any(model.keeps_snapshots for model in config.models):
        raise ValueError("evaluation.dynamics needs a model with snapshots; set its training.snapshots to log")
    if config.evaluation.of(DynamicsSettings).tags == "paper" and not config.corpus.trees:
        raise ValueError("evaluation.dynamics.tags: paper needs corpus.trees; or take tags: drawn")
