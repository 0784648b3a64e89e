"""Settings of the transformer with adaptive softmax."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from truesource.lmtrain.architectures.settings import TransformerSettings
from truesource.lmtrain.config import ARCHITECTURE


class AdaptiveSettings(TransformerSettings):
    """A GPT-2 with an adaptive softmax."""

    architecture: Literal["adaptive"] = Field("adaptive", description=ARCHITECTURE)
    presets = {"tiny": {"heads": 4}, "paper": {"heads": 8, "ffn_dim": 1024}}

    cutoffs: tuple[int, ...] | None = Field(
        None, description="Rising token numbers, from 1 on, at which the clusters after the first begin."
    )

    @model_validator(mode="after")
    def _cutoffs_rise(self) -> Self:
        cutoffs = self.cutoffs
        if cutoffs is not None and (not cutoffs or cutoffs[0] < 1 or list(cutoffs) != sorted(set(cutoffs))):
            raise ValueError(f"cutoffs must be rising token numbers from 1 on, not {list(cutoffs)}")
        return self


SETTINGS = AdaptiveSettings
