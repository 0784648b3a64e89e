"""Settings of DeBERTa."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from truesource.lmtrain.architectures.settings import EncoderSettings
from truesource.lmtrain.config import ARCHITECTURE


class DeBERTaSettings(EncoderSettings):
    """A DeBERTa."""

    architecture: Literal["deberta"] = Field("deberta", description=ARCHITECTURE)
    model_type = "deberta-v2"
    presets = {
        "tiny": {"heads": 4, "local_start": True},
        "paper": {"heads": 8, "ffn_dim": 256, "max_positions": 512},
    }

    variant: Literal["v2", "v3"] | None = Field(
        None, description="Published variant of DeBERTa; default: the plain one, with relative positions alone."
    )

    @model_validator(mode="after")
    def _local_start_has_distances(self) -> Self:
        if self.local_start and self.variant is not None:
            raise ValueError(f"local_start does not go with variant {self.variant}; set it to false")
        return self


SETTINGS = DeBERTaSettings
