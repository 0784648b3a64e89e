"""The settings of every architecture, their presets and their objective, without torch: `SETTINGS`, by name.

The networks are in `truesource.lmtrain.architectures.networks`, the counts in `truesource.lmtrain.architectures.ngram`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from truesource.grammar.support.room import approximate, require_memory
from truesource.lmtrain.config import ARCHITECTURE, ModelConfig

if TYPE_CHECKING:
    from truesource.generator.objectives import Objective
    from truesource.lmtrain.config import TrainConfig

DEFAULT = "gpt2"
MOST_LAYERS = 10_000  #: each is built by itself, which takes milliseconds
USUAL_TOKENS = 1024  #: tokens of a batch that are expected before a corpus is read, if no fewer are asked for
_TRAINED = 16  #: bytes of a parameter in training: its value, its gradient and two averages of AdamW, in float32


class NetworkSettings(ModelConfig):
    """Settings of a network of equal layers."""

    advanced: ClassVar = frozenset({"dropout", "init_std"})
    objective: ClassVar[Objective] = "causal"
    objects: ClassVar[int] = 30_000  #: lower bound on the bytes of the Python objects of a layer in training
    layers: int = Field(2, ge=1, le=MOST_LAYERS, description="Number of layers.")
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

    @property
    def least_parameters(self) -> int:
        """Lower bound on the number of parameters, word vectors excluded."""
        return 2 * self.layers * self.dim**2

    @property
    def least_activations(self) -> int:
        """Lower bound on the numbers per token that a layer keeps for the gradient."""
        return 5 * self.dim


class TransformerSettings(NetworkSettings):
    """Settings of a transformer."""

    position_vectors: ClassVar[bool] = True  #: a vector for each of `max_positions`
    objects = 100_000
    advanced: ClassVar = frozenset({"ffn_dim"})
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
        """Number of attention heads."""
        return self.heads or 4

    @property
    def inner(self) -> int:
        """Inner width of the feed-forward layers."""
        return self.ffn_dim or 4 * self.dim

    @property
    def longest(self) -> int:
        """Maximum number of tokens of an input."""
        return self.max_positions

    @override
    @property
    def least_parameters(self) -> int:
        positions = self.max_positions * self.dim if self.position_vectors else 0
        return 2 * self.layers * self.dim * (self.dim + self.inner) + positions

    @override
    @property
    def least_activations(self) -> int:
        return 6 * self.dim + 2 * self.inner

    def with_defaults(self) -> Self:
        """Fill in the heads and the inner width that are built."""
        return self.model_copy(update={"heads": self.n_heads, "ffn_dim": self.inner})


class EncoderSettings(TransformerSettings):
    """Settings of a masked transformer."""

    advanced: ClassVar = frozenset({"local_start"})
    objective: ClassVar[Objective] = "masked"
    local_start: bool = Field(
        False, description="Start with attention heads of the first layer that look at the neighbouring words."
    )


class GPT2Settings(TransformerSettings):
    """A GPT-2."""

    architecture: Literal["gpt2"] = Field("gpt2", description=ARCHITECTURE)
    presets = {"tiny": {"heads": 4}, "paper": {"heads": 8, "ffn_dim": 1024, "max_positions": 1024}}


class LlamaSettings(TransformerSettings):
    """A Llama."""

    position_vectors = False
    advanced: ClassVar = frozenset({"kv_heads", "tie_words"})
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
        """Number of heads of keys and values."""
        return self.kv_heads or self.n_heads

    def with_defaults(self) -> Self:
        """Fill in the heads of keys and values too."""
        return super().with_defaults().model_copy(update={"kv_heads": self.n_kv_heads})


class OPTSettings(TransformerSettings):
    """An OPT."""

    advanced: ClassVar = frozenset({"tie_words"})
    architecture: Literal["opt"] = Field("opt", description=ARCHITECTURE)
    presets = {
        "tiny": {"heads": 4},
        "paper": {"heads": 8, "ffn_dim": 256, "max_positions": 512, "tie_words": False},
    }

    tie_words: bool | None = Field(None, description="Use the word vectors as output weights (default: yes).")


class BERTSettings(EncoderSettings):
    """A BERT."""

    architecture: Literal["bert"] = Field("bert", description=ARCHITECTURE)
    presets = {
        "tiny": {"heads": 4, "local_start": True},
        "paper": {"heads": 8, "ffn_dim": 256, "max_positions": 512},
    }


class MaskedDiffusionSettings(EncoderSettings):
    """A BERT that fills any number of gaps."""

    architecture: Literal["diffusion"] = Field("diffusion", description=ARCHITECTURE)
    objective: ClassVar[Objective] = "any-order"
    model_type = "bert"
    presets = BERTSettings.presets

    @model_validator(mode="after")
    def _whole_words(self) -> Self:
        if self.tokenizer != "word":
            raise ValueError(f"diffusion fills gaps of whole words; leave tokenizer {self.tokenizer} out")
        return self


class RoBERTaSettings(EncoderSettings):
    """A RoBERTa."""

    architecture: Literal["roberta"] = Field("roberta", description=ARCHITECTURE)
    presets = {"tiny": {"heads": 4, "local_start": True}, "paper": {"heads": 8, "ffn_dim": 256}}


class DeBERTaSettings(EncoderSettings):
    """A DeBERTa."""

    position_vectors = False
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


class LSTMSettings(NetworkSettings):
    """Stacked LSTM layers."""

    advanced: ClassVar = frozenset({"tie_words"})
    architecture: Literal["lstm"] = Field("lstm", description=ARCHITECTURE)
    presets = {"paper": {"layers": 3, "dim": 512}}

    tie_words: bool | None = Field(None, description="Use the word vectors as output weights (default: yes).")

    @override
    @property
    def least_activations(self) -> int:
        return 16 * self.dim


class GatedCNNSettings(NetworkSettings):
    """Residual blocks of one gated convolution each."""

    advanced: ClassVar = frozenset({"tie_words"})
    architecture: Literal["gated_cnn"] = Field("gated_cnn", description=ARCHITECTURE)
    presets = {"tiny": {"layers": 6, "kernel_size": 4}, "paper": {"kernel_size": 4}}

    kernel_size: int | None = Field(None, ge=2, description="Number of tokens that a convolution sees (default: 4).")
    tie_words: bool | None = Field(None, description="Use the word vectors as output weights (default: yes).")


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


def require_room(
    config: ModelConfig, words: int = 0, *, training: TrainConfig | None = None, tokens: int = USUAL_TOKENS
) -> None:
    """Refuse a network whose training does not fit the memory of this machine, before it is built.

    Args:
        config: settings of the model; only built-in networks are estimated.
        words: size of the vocabulary, as far as it is known.
        training: settings of the training; None: not known, or of a model without batches.
        tokens: most tokens that a batch can have, of those in memory of this machine.

    Raises:
        NoRoomError: it does not fit.
    """
    if isinstance(config, NetworkSettings):
        parameters = config.least_parameters + words * config.dim
        require_memory(
            f"training {config.label}, which has {approximate(parameters)} parameters or more",
            _TRAINED * parameters + config.layers * (config.objects + _activations(config, training, tokens)),
            "choose fewer layers, a smaller dim, or smaller batches (model.layers, model.dim, training.batch_tokens)",
        )


def _activations(config: NetworkSettings, training: TrainConfig | None, tokens: int) -> int:
    """Return a lower bound on the bytes that one layer keeps of a batch for the gradient."""
    if training is None:
        return 0
    limit = training.batch_tokens if training.batch_sentences is None else training.batch_sentences
    size = 2 if training.precision == "bf16" else 4
    return size * min(tokens, limit) * config.least_activations


#: by name of the architecture
SETTINGS: dict[str, type[ModelConfig]] = {
    "gpt2": GPT2Settings,
    "llama": LlamaSettings,
    "opt": OPTSettings,
    "bert": BERTSettings,
    "diffusion": MaskedDiffusionSettings,
    "roberta": RoBERTaSettings,
    "deberta": DeBERTaSettings,
    "lstm": LSTMSettings,
    "gated_cnn": GatedCNNSettings,
    "adaptive": AdaptiveSettings,
    "ngram": NgramSettings,
}


def names() -> list[str]:
    """Return all architectures, in alphabetical order."""
    return sorted(SETTINGS)
