"""Settings that several architectures take."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, model_validator

from truesource.lmtrain.config import ModelConfig

if TYPE_CHECKING:
    from truesource.generator.language_model import Objective


class NetworkSettings(ModelConfig):
    """Of a network of equal layers."""

    objective: ClassVar[Objective] = "causal"
    layers: int = Field(2, ge=1, description="Number of layers.")
    dim: int = Field(128, ge=1, description="Width of hidden states and word vectors.")
    dropout: float = Field(0.1, ge=0.0, lt=1.0, description="Probability that a hidden unit is dropped in training.")
    init_std: float = Field(
        0.02,
        gt=0.0,
        description="Standard deviation of the initial weights; small models learn faster from dim ** -0.5.",
    )

    @property
    def size(self) -> str:
        """Layers and width."""
        return f"{self.layers}x{self.dim}"


class TransformerSettings(NetworkSettings):
    """Of a transformer."""

    heads: int | None = Field(None, ge=1, description="Number of attention heads (default: 4).")
    ffn_dim: int | None = Field(None, ge=1, description="Inner width of the feed-forward layers (default: 4 * dim).")
    max_positions: int = Field(
        128, ge=3, description="Maximum number of tokens of an input, <bos> (masked models: and <eos>) included."
    )

    @model_validator(mode="after")
    def _heads_divide_dim(self) -> Self:
        if self.dim % self.n_heads:
            raise ValueError(f"dim {self.dim} is not a multiple of heads {self.n_heads}")
        return self

    @property
    def n_heads(self) -> int:
        """Attention heads."""
        return self.heads or 4

    @property
    def inner(self) -> int:
        """Inner width of the feed-forward layers."""
        return self.ffn_dim or 4 * self.dim

    @property
    def longest(self) -> int:
        """Maximum number of tokens of an input."""
        return self.max_positions

    def with_defaults(self) -> Self:
        """With the heads and the inner width that are built."""
        return self.model_copy(update={"heads": self.n_heads, "ffn_dim": self.inner})


class EncoderSettings(TransformerSettings):
    """Of a masked transformer."""

    objective: ClassVar[Objective] = "masked"
    local_start: bool = Field(
        False, description="Start with attention heads of the first layer that look at the neighbouring words."
    )
