"""Settings of Llama."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from truesource.lmtrain.architectures.settings import TransformerSettings
from truesource.lmtrain.config import ARCHITECTURE


class LlamaSettings(TransformerSettings):
    """A Llama."""

    architecture: Literal["llama"] = Field("llama", description=ARCHITECTURE)
    presets = {
        "tiny": {"heads": 4, "ffn_dim": 344},
        "paper": {"heads": 8, "ffn_dim": 683, "tie_words": True},
    }

    kv_heads: int | None = Field(
        None, ge=1, description="Number of heads of keys and values; a divisor of heads (default: heads)."
    )
    tie_words: bool | None = Field(None, description="Use the word vectors as output weights (default: no).")

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.n_heads % self.n_kv_heads:
            raise ValueError(f"heads {self.n_heads} is not a multiple of kv_heads {self.kv_heads}")
        if self.dim // self.n_heads % 2:
            raise ValueError(f"llama needs an even number of dim / heads, not {self.dim}/{self.n_heads}")
        return self

    @property
    def n_kv_heads(self) -> int:
        """Heads of keys and values."""
        return self.kv_heads or self.n_heads

    def with_defaults(self) -> Self:
        """Also with the heads of keys and values that are built."""
        return super().with_defaults().model_copy(update={"kv_heads": self.n_kv_heads})


SETTINGS = LlamaSettings
