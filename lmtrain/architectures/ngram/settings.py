"""Settings of n-gram models."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from truesource.lmtrain.config import ModelConfig

if TYPE_CHECKING:
    from truesource.generator.interface.language_model import Objective


class NgramSettings(ModelConfig):
    """Counts of n-grams."""

    objective: ClassVar[Objective] = "causal"
    counts = True
    architecture: Literal["ngram"] = "ngram"
    presets = {"tiny": {"order": 3}, "paper": {"order": 3, "smoothing": "mle"}}

    order: int = Field(3, ge=1)  #: tokens of the longest n-grams
    smoothing: Literal["mle", "kneser_ney"] = "kneser_ney"  #: see `truesource.lmtrain.architectures.ngram.smoothing`

    @property
    def size(self) -> str:
        """Order and smoothing."""
        return f"{self.order}-{self.smoothing.replace('_', '-')}"


SETTINGS = NgramSettings
