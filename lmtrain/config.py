"""Settings of a model and of its training: two objects, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import explain
from truesource.grammar.support.settings import brief_line, none_as_null, require_numbers

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as _ModelClass

    from truesource.generator.objectives import Objective
else:
    _ModelClass = type(BaseModel)  # pydantic does not export it


#: keys that the record of every model holds, whatever its architecture; a setting that the architecture does not take
#: has the value given here. Records of finished runs are compared with new ones, so this never changes: settings of
#: later architectures are recorded for those that take them alone.
RECORDED: Mapping[str, Any] = {
    "architecture": None,
    "name": None,
    "layers": 2,
    "heads": None,
    "kv_heads": None,
    "dim": 128,
    "ffn_dim": None,
    "dropout": 0.1,
    "kernel_size": None,
    "tie_words": None,
    "cutoffs": None,
    "variant": None,
    "local_start": False,
    "init_std": 0.02,
    "max_positions": 128,
    "tokenizer": "word",
    "vocab_size": None,
    "order": 3,
    "smoothing": "kneser_ney",
    "min_count": 1,
}


ARCHITECTURE = "Architecture of the model, or code of your own as file.py:name."


class _ExplainedClass(_ModelClass):
    """A class of settings: a mistake in a call of it is one sentence; `model_validate` raises what pydantic raises."""

    def __call__(self, *args: Any, **values: Any) -> Any:
        try:
            return super().__call__(*args, **values)
        except ValidationError as error:
            raise InputError(f"{self.__name__}: {explain(error, model=self)}", code="bad-setting") from error


class ModelConfig(BaseModel, metaclass=_ExplainedClass):
    """Settings of a model and its vocabulary that all architectures take.

    Every architecture has a subclass with its own settings (`truesource.lmtrain.architectures`), which
    `truesource.lmtrain.model_registry.model_settings` makes from names and values. A setting that the architecture does
    not take is refused.
    """

    advanced: ClassVar = frozenset({"name"})
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    objective: ClassVar[Objective]
    counts: ClassVar[bool] = False  #: learns by counting: it has neither training settings nor hidden states
    model_type: ClassVar[str | None] = None  #: in ``config.json``; None: the name of the architecture
    #: by name of a preset: where the architecture differs from the others, see `truesource.lmtrain.model_registry`
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    architecture: str = Field(description=ARCHITECTURE)
    name: str | None = Field(None, min_length=1, description="Name in tables (default: architecture and size).")
    tokenizer: Literal["word", "bpe", "unigram"] = Field(
        "word", description="Tokens: whole words, or pieces of words by byte-pair encoding (bpe) or a unigram model."
    )
    vocab_size: int | None = Field(
        None, ge=8, description="Tokenizers bpe and unigram: number of tokens, the 5 special ones included."
    )
    min_count: int = Field(
        1, ge=1, description="Tokenizer word: words that occur less often in the train split become <unk>."
    )

    @model_validator(mode="before")
    @classmethod
    def _none_is_a_value(cls, values: Any) -> Any:
        return none_as_null(cls.model_fields, values)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_settings_of_others(cls, values: dict[str, object]) -> dict[str, object]:
        """Drop the settings of other architectures, which a record holds at their defaults."""
        others = {key for key in values if key in RECORDED and key not in cls.model_fields}
        for key in others:
            if values[key] != RECORDED[key]:
                raise ValueError(f"{values['architecture']} takes no {key}; leave it out")
        return {key: value for key, value in values.items() if key not in others}

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        require_numbers(self.__dict__)
        return self

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

    @model_serializer(mode="wrap")
    def _record(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {**RECORDED, **handler(self)}

    def __repr__(self) -> str:
        return brief_line(self)

    @property
    def longest(self) -> int | None:
        """Maximum number of tokens of an input; None: any number."""
        return None

    @property
    def size(self) -> str:
        """Part of the name in tables, such as ``2x128``."""
        return ""

    @property
    def label(self) -> str:
        """Name in tables, such as ``gpt2-2x128``, or ``gpt2-2x128-bpe1000``."""
        pieces = "" if self.vocab_size is None else f"{self.tokenizer}{self.vocab_size}"
        return self.name or "-".join(filter(None, (self.architecture, self.size, pieces)))

    def with_defaults(self) -> Self:
        """Fill in the values that are built where a setting is left out, so that equal models have equal settings."""
        return self


class TrainConfig(BaseModel, metaclass=_ExplainedClass):
    """Duration, speed and batches of a training. AdamW throughout."""

    advanced: ClassVar = frozenset(
        {
            "max_seconds",
            "batch_sentences",
            "accumulation",
            "schedule",
            "warmup_steps",
            "weight_decay",
            "betas",
            "clip",
            "mask_probability",
            "mask_probability_end",
            "eval_sentences",
            "checkpoint_every",
            "snapshot_every",
            "snapshots_per_doubling",
            "report_to",
        }
    )
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epochs: float | None = Field(None, gt=0.0, description="Passes over the train split; give this or max_steps.")
    max_steps: int | None = Field(None, ge=1, description="Number of optimiser steps; give this or epochs.")
    max_seconds: float | None = Field(
        None, gt=0.0, description="Stop early after this many seconds; such a run cannot be repeated exactly."
    )
    batch_tokens: int = Field(
        1024,
        ge=1,
        description="Approximate number of predicted tokens and padding in a batch, per process and micro-batch.",
    )
    batch_sentences: int | None = Field(
        None, ge=1, description="Number of sentences in a batch, in place of batch_tokens."
    )
    accumulation: int = Field(1, ge=1, le=10**6, description="Micro-batches of one optimiser step, in each process.")
    learning_rate: float = Field(1e-3, gt=0.0, description="Peak learning rate of AdamW, reached after the warm-up.")
    schedule: Literal["cosine", "linear", "constant"] = Field(
        "cosine", description="Decay of the learning rate after the warm-up."
    )
    warmup_steps: int = Field(
        50, ge=0, description="Steps in which the learning rate rises from 0; no more than half of all."
    )
    weight_decay: float = Field(0.1, ge=0.0, description="Weight decay of AdamW.")
    betas: tuple[float, float] = Field(
        (0.9, 0.999), description="Decay rates of the two moment estimates of AdamW, from 0 to below 1."
    )
    clip: float = Field(1.0, ge=0.0, description="Maximum norm of the gradient; 0: no clipping.")
    mask_probability: float = Field(
        0.3, gt=0.0, le=1.0, description="Masked models: probability that a word is masked, at the start."
    )
    mask_probability_end: float | None = Field(
        None,
        gt=0.0,
        le=1.0,
        description="Masked models: mask_probability at the end, reached linearly (default: as at the start).",
    )
    eval_every: int = Field(
        100, ge=1, description="Steps between lines of metrics.jsonl, each with the loss on the dev split."
    )
    eval_sentences: int = Field(1000, ge=1, description="Maximum number of dev sentences that a loss is computed on.")
    checkpoint_every: int = Field(
        500, ge=1, description="Steps between checkpoints, which an interrupted training continues from."
    )
    snapshots: Literal["none", "linear", "log"] = Field(
        "none", description="Models kept during training, at equal (linear) or exponential (log) distances."
    )
    snapshot_every: int = Field(1000, ge=1, description="Snapshots linear: steps between them.")
    snapshots_per_doubling: int = Field(
        1, ge=1, description="Snapshots log: 1 keeps steps 1, 2, 4, 8, ..., and 2 also 3, 6, 11, ..."
    )
    precision: Literal["fp32", "bf16"] = Field(
        "fp32", description="Arithmetic of training; bf16: mixed precision, slow on CPUs without bf16 arithmetic."
    )

    report_to: tuple[str, ...] = Field(
        (),
        exclude=True,  # from records and digests: weights do not depend on it
        description="Trackers that are shown the metrics, as transformers names them: tensorboard, wandb, trackio, ...",
    )

    def __repr__(self) -> str:
        return brief_line(self)

    @model_validator(mode="before")
    @classmethod
    def _none_is_a_value(cls, values: Any) -> Any:
        return none_as_null(cls.model_fields, values)

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        require_numbers(self.__dict__)
        return self

    @model_validator(mode="after")
    def _one_duration(self) -> Self:
        if (self.epochs is None) == (self.max_steps is None):
            raise ValueError("give either epochs or max_steps")
        return self
