"""What is trained and how: two settings objects, checked field by field, and presets that are known to work."""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class ModelConfig(BaseModel):
    """Shape of a model and its vocabulary."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    architecture: str = "gpt2"  #: a name in `lmtrain.architectures.ARCHITECTURES`
    name: str | None = Field(None, min_length=1)  #: what tables call it; None: architecture and size
    layers: int = Field(2, ge=1)
    heads: int = Field(4, ge=1)
    dim: int = Field(128, ge=1)  #: width of the hidden states and word vectors
    ffn_dim: int | None = Field(None, ge=1)  #: inner width of the feed-forward layers; None: 4 * dim
    dropout: float = Field(0.1, ge=0.0, lt=1.0)
    local_start: bool = False  #: bert only: heads of the first layer start by looking at the neighbouring words
    init_std: float = Field(0.02, gt=0.0)  #: of the initial weights; small models learn faster from dim ** -0.5
    max_positions: int = Field(128, ge=3)  #: longest input in tokens, <bos> (and <eos> of masked models) included
    min_count: int = Field(1, ge=1)  #: words seen less often in the train split become <unk>

    @model_validator(mode="after")
    def _heads_divide_dim(self) -> Self:
        if self.dim % self.heads:
            raise ValueError(f"dim {self.dim} is not a multiple of heads {self.heads}")
        return self

    @property
    def label(self) -> str:
        """Name in tables, such as ``gpt2-2x128``."""
        return self.name or f"{self.architecture}-{self.layers}x{self.dim}"


class TrainConfig(BaseModel):
    """How long, how fast and on what batches a model is trained. AdamW throughout."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    epochs: float | None = Field(None, gt=0.0)  #: passes over the train split; give this or ``max_steps``
    max_steps: int | None = Field(None, ge=1)  #: optimiser steps; give this or ``epochs``
    max_seconds: float | None = Field(
        None, gt=0.0
    )  #: stop early after this long; such a run cannot be repeated exactly
    batch_tokens: int = Field(
        1024, ge=1
    )  #: predicted positions and padding of a batch, about; per process and micro-batch
    accumulation: int = Field(1, ge=1)  #: micro-batches of one optimiser step
    learning_rate: float = Field(1e-3, gt=0.0)
    schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup_steps: int = Field(50, ge=0)
    weight_decay: float = Field(0.1, ge=0.0)
    betas: tuple[float, float] = (0.9, 0.999)
    clip: float = Field(1.0, ge=0.0)  #: largest gradient norm; 0: no clipping
    mask_probability: float = Field(0.3, gt=0.0, le=1.0)  #: share of the words masked; masked models only
    mask_probability_end: float | None = Field(None, gt=0.0, le=1.0)  #: linearly reached at the end; None: the same
    eval_every: int = Field(100, ge=1)  #: steps between lines of metrics.jsonl, and between losses on the dev split
    eval_sentences: int = Field(1000, ge=1)  #: how much of the dev split such a loss reads, at most
    checkpoint_every: int = Field(500, ge=1)  #: steps
    precision: Literal["fp32", "bf16"] = "fp32"

    @model_validator(mode="after")
    def _one_duration(self) -> Self:
        if (self.epochs is None) == (self.max_steps is None):
            raise ValueError("give either epochs or max_steps")
        return self


class Preset(NamedTuple):
    """A model and its training that go together."""

    model: ModelConfig
    training: TrainConfig


PRESETS: dict[str, Preset] = {
    "tiny-causal": Preset(
        ModelConfig(architecture="gpt2", layers=2, heads=4, dim=128, dropout=0.0, init_std=0.088),
        TrainConfig(epochs=1.0, learning_rate=3e-3, warmup_steps=100, weight_decay=0.05),
    ),
    "tiny-masked": Preset(
        ModelConfig(architecture="bert", layers=2, heads=4, dim=128, dropout=0.0, local_start=True),
        TrainConfig(
            epochs=1.0,
            learning_rate=2e-3,
            weight_decay=0.05,
            mask_probability=0.5,
            mask_probability_end=0.2,
        ),
    ),
}
