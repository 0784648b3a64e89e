"""What is trained and how: two settings objects, checked field by field."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from truesource.lmtrain.model_registry import TAKES

_OPTIONAL = frozenset().union(*TAKES.values())


class ModelConfig(BaseModel):
    """Shape of a model and its vocabulary. A setting that the architecture does not take is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    architecture: str = "gpt2"  #: a name in `truesource.lmtrain.model_registry.TAKES`
    name: str | None = Field(None, min_length=1)  #: what tables call it; None: architecture and size
    layers: int = Field(2, ge=1)
    heads: int | None = Field(None, ge=1)  #: attention heads; None: 4
    kv_heads: int | None = Field(None, ge=1)  #: llama only: heads of keys and values; None: as many as ``heads``
    dim: int = Field(128, ge=1)  #: width of the hidden states and word vectors
    ffn_dim: int | None = Field(None, ge=1)  #: inner width of the feed-forward layers; None: 4 * dim
    dropout: float = Field(0.1, ge=0.0, lt=1.0)
    kernel_size: int | None = Field(None, ge=2)  #: gated_cnn only: tokens that a convolution sees; None: 4
    tie_words: bool | None = None  #: output weights are the word vectors; None: yes, but for llama no
    cutoffs: tuple[int, ...] | None = None  #: adaptive only: token numbers at which the clusters after the first begin
    variant: Literal["v2", "v3"] | None = None  #: deberta only: see `truesource.lmtrain.architectures.deberta`
    local_start: bool = False  #: masked models: first-layer heads start by looking at the neighbouring words
    init_std: float = Field(0.02, gt=0.0)  #: of the initial weights; small models learn faster from dim ** -0.5
    max_positions: int = Field(128, ge=3)  #: longest input in tokens, <bos> (and <eos> of masked models) included
    tokenizer: Literal["word", "bpe", "unigram"] = (
        "word"  #: whole words, or pieces of words, see `truesource.lmtrain.subwords`
    )
    vocab_size: int | None = Field(None, ge=8)  #: bpe, unigram: tokens in all, the 5 special ones included
    order: int = Field(3, ge=1)  #: ngram only: tokens of the longest n-grams
    smoothing: Literal["mle", "kneser_ney"] = "kneser_ney"  #: ngram only: see `truesource.lmtrain.ngram.smoothing`
    min_count: int = Field(1, ge=1)  #: word: words seen less often in the train split become <unk>

    @model_validator(mode="after")
    def _settings_fit_the_architecture(self) -> Self:
        takes = TAKES.get(self.architecture)
        if takes is None:
            raise ValueError(f"unknown architecture {self.architecture!r}; there are {', '.join(TAKES)}")
        for name, field in type(self).model_fields.items():
            if name in _OPTIONAL and name not in takes and getattr(self, name) != field.default:
                raise ValueError(f"{self.architecture} takes no {name}; leave it out")
        return self

    @model_validator(mode="after")
    def _heads_divide_dim(self) -> Self:
        if self.dim % self.n_heads and "heads" in TAKES[self.architecture]:
            raise ValueError(f"dim {self.dim} is not a multiple of heads {self.n_heads}")
        if self.kv_heads is not None and self.n_heads % self.kv_heads:
            raise ValueError(f"heads {self.n_heads} is not a multiple of kv_heads {self.kv_heads}")
        if self.architecture == "llama" and self.dim // self.n_heads % 2:
            raise ValueError(f"llama needs an even number of dim / heads, not {self.dim}/{self.n_heads}")
        return self

    @model_validator(mode="after")
    def _local_start_has_distances(self) -> Self:
        if self.local_start and self.variant is not None:
            raise ValueError(f"local_start does not go with variant {self.variant}; set it to false")
        return self

    @model_validator(mode="after")
    def _cutoffs_rise(self) -> Self:
        cutoffs = self.cutoffs
        if cutoffs is not None and (not cutoffs or cutoffs[0] < 1 or list(cutoffs) != sorted(set(cutoffs))):
            raise ValueError(f"cutoffs must be rising token numbers from 1 on, not {list(cutoffs)}")
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
    def longest(self) -> int | None:
        """The most tokens an input may have; None: any number."""
        return self.max_positions if "max_positions" in TAKES[self.architecture] else None

    @model_validator(mode="after")
    def _vocabulary_fits_the_tokenizer(self) -> Self:
        if self.tokenizer == "word":
            if self.vocab_size is not None:
                raise ValueError("vocab_size is a setting of the bpe and unigram tokenizers; use min_count with words")
        elif self.vocab_size is None:
            raise ValueError(f"the {self.tokenizer} tokenizer needs vocab_size, for example 1000")
        elif self.min_count != 1:
            raise ValueError("min_count is a setting of the word tokenizer; pieces spell rare words too")
        return self

    @property
    def label(self) -> str:
        """Name in tables, such as ``gpt2-2x128``, or ``gpt2-2x128-bpe1000``."""
        pieces = "" if self.vocab_size is None else f"-{self.tokenizer}{self.vocab_size}"
        if self.architecture == "ngram":
            return self.name or f"ngram-{self.order}-{self.smoothing.replace('_', '-')}{pieces}"
        return self.name or f"{self.architecture}-{self.layers}x{self.dim}{pieces}"


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
    batch_sentences: int | None = Field(None, ge=1)  #: sentences of a batch, in place of ``batch_tokens``
    accumulation: int = Field(1, ge=1)  #: micro-batches of one optimiser step, in each process
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
    checkpoint_every: int = Field(500, ge=1)  #: steps; the last two are kept, to go on from, until the run is finished
    snapshots: Literal["none", "linear", "log"] = "none"  #: models kept for good, see `truesource.lmtrain.snapshots`
    snapshot_every: int = Field(1000, ge=1)  #: linear snapshots only: steps between them
    snapshots_per_doubling: int = Field(
        1, ge=1
    )  #: log snapshots only: 1 is steps 1, 2, 4, 8, ..., 2 also 3, 6, 11, ...
    precision: Literal["fp32", "bf16"] = "fp32"  #: bf16: mixed; on a CPU correct, but slow without bf16 arithmetic

    @model_validator(mode="after")
    def _one_duration(self) -> Self:
        if (self.epochs is None) == (self.max_steps is None):
            raise ValueError("give either epochs or max_steps")
        return self
