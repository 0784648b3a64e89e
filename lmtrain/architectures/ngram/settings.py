"""Settings of n-gram models."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from truesource.lmtrain.config import ARCHITECTURE, ModelConfig

if TYPE_CHECKING:
    from truesource.generator.language_model import Objective


class NgramSettings(ModelConfig):
    """Counts of n-grams."""

    objective: ClassVar[Objective] = "causal"
    counts = True
    architecture: Literal["ngram"] = Field("ngram", description=ARCHITECTURE)
    presets = {"tiny": {"order": 3}, "paper": {"order": 3, "smoothing": "mle"}}

    order: int = Field(3, ge=1, description="Number of tokens of the longest n-grams.")
    smoothing: Literal["mle", "kneser_ney"] = Field(
        "kneser_ney", description="Modified Kneser-Ney smoothing, or relative frequencies (mle)."
    )

    @property
    def size(self) -> str:
        """Order and smoothing."""
        return f"{self.order}-{self.smoothing.replace('_', '-')}"


SETTINGS = NgramSettings
