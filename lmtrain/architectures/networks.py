"""The networks that are trained, by name: `NETWORKS`.

A network that `transformers` has is imported when it is built. One that it lacks is a module beside this one, named as
the architecture, which travels with its models (`truesource.lmtrain.model_code`) and is registered here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import transformers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from truesource.generator.language_model import Objective
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.adaptive import SHRINK, AdaptiveConfig, AdaptiveForCausalLM
from truesource.lmtrain.architectures.gated_cnn import GatedCNNConfig, GatedCNNForCausalLM
from truesource.lmtrain.architectures.local_start import start_local, start_local_distances
from truesource.lmtrain.architectures.lstm import LSTMConfig, LSTMForCausalLM
from truesource.lmtrain.architectures.settings import (
    AdaptiveSettings,
    BERTSettings,
    DeBERTaSettings,
    GatedCNNSettings,
    GPT2Settings,
    LlamaSettings,
    LSTMSettings,
    NetworkSettings,
    OPTSettings,
    RoBERTaSettings,
)
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.tokenizer import Encoder

SettingsType = TypeVar("SettingsType", bound=ModelConfig)


def positions(config: Any) -> int | None:
    """The length limit that most configurations state themselves."""
    return int(config.max_position_embeddings)


@dataclass(frozen=True)
class NetworkArchitecture(Generic[SettingsType]):
    """A family of networks of any size.

    ``build`` must return a `PreTrainedModel` with random weights that takes ``input_ids`` (and
    ``attention_mask``) and returns ``logits`` (B, L, V); nothing may be fetched.

    A causal model must ignore what stands right of a position even without a mask. Called with
    ``use_cache=True`` it also returns ``past_key_values``, to be given back with the tokens that follow: an
    object with ``batch_select_indices(indices)``, which drops or repeats rows in place. It may be changed by
    the call that gets it.
    """

    settings: type[SettingsType]
    head: str  #: attribute of the submodule that maps hidden states (..., dim) to logits (..., V)
    build: Callable[[SettingsType, Encoder], PreTrainedModel]
    longest: Callable[[Any], int | None] = positions  #: tokens that a model of a configuration reads; None: any number

    @property
    def objective(self) -> Objective:
        """What it predicts from."""
        return self.settings.objective


SPECIALS = 5  #: tokens that stand before the words; under adaptive softmax they belong to the first cluster

# keywords of configurations, and the setting that each takes
_LAYERS = {"hidden_size": "dim", "num_hidden_layers": "layers"}
_RECURRENT = {**_LAYERS, "dropout": "dropout", "initializer_range": "init_std"}
_TRANSFORMER = {**_LAYERS, "max_position_embeddings": "max_positions", "num_attention_heads": "n_heads"}
_LLAMA = {
    **_TRANSFORMER,
    "num_key_value_heads": "n_kv_heads",
    "intermediate_size": "inner",
    "attention_dropout": "dropout",
    "initializer_range": "init_std",
}
_OPT = {
    **_TRANSFORMER,
    "word_embed_proj_dim": "dim",
    "ffn_dim": "inner",
    "dropout": "dropout",
    "attention_dropout": "dropout",
    "init_std": "init_std",
}
_ENCODER = {
    **_TRANSFORMER,
    "intermediate_size": "inner",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "dropout",
    "initializer_range": "init_std",
}
_GPT2 = {
    "n_positions": "max_positions",
    "n_embd": "dim",
    "n_layer": "layers",
    "n_head": "n_heads",
    "n_inner": "inner",
    "resid_pdrop": "dropout",
    "embd_pdrop": "dropout",
    "attn_pdrop": "dropout",
    "initializer_range": "init_std",
}
_GELU = "gelu_pytorch_tanh"  #: the same function as the default of GPT-2, in one fused operation
_DEBERTA_V3: dict[str, Any] = {"share_att_key": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm"}
_DEBERTA: dict[str | None, dict[str, Any]] = {
    None: {},
    "v3": _DEBERTA_V3,
    "v2": {**_DEBERTA_V3, "conv_kernel_size": 3, "conv_act": "gelu"},
}


def configuration(
    make: Callable[..., Any],
    settings: NetworkSettings,
    vocabulary: Encoder,
    keywords: Mapping[str, str],
    **others: Any,
) -> Any:
    """A configuration of a network: its size, dropout, initial weights and special tokens.

    Args:
        make: class of the configuration.
        settings: of the model.
        vocabulary: the tokeniser.
        keywords: names of settings, by keyword of ``make``.
        others: further keywords of ``make``; they come before those of the settings.
    """
    tokens = {"bos_token_id": vocabulary.bos, "eos_token_id": vocabulary.eos, "pad_token_id": vocabulary.pad}
    shape = {keyword: getattr(settings, setting) for keyword, setting in keywords.items()}
    return make(vocab_size=len(vocabulary), **tokens, **{**shape, **others})


def _gpt2(settings: GPT2Settings, vocabulary: Encoder) -> PreTrainedModel:
    """GPT-2: a causal transformer, layer norm first, tied word vectors (Radford et al. 2019)."""
    made = configuration(transformers.GPT2Config, settings, vocabulary, _GPT2, activation_function=_GELU)
    return transformers.GPT2LMHeadModel(made)


def _llama(settings: LlamaSettings, vocabulary: Encoder) -> PreTrainedModel:
    """Llama: a causal transformer, rotary positions, RMS norm first, gated feed-forward layers (Touvron et al. 2023).

    ``kv_heads`` below ``heads`` is grouped-query attention (Ainslie et al. 2023). Dropout is in the attention only,
    the one place where the architecture has it.
    """
    tied = bool(settings.tie_words)
    made = configuration(transformers.LlamaConfig, settings, vocabulary, _LLAMA, tie_word_embeddings=tied)
    return transformers.LlamaForCausalLM(made)


def _opt(settings: OPTSettings, vocabulary: Encoder) -> PreTrainedModel:
    """OPT: GPT-2 with rectified linear units and positions counted from the attention mask (Zhang et al. 2022)."""
    tied = settings.tie_words is not False
    made = configuration(transformers.OPTConfig, settings, vocabulary, _OPT, tie_word_embeddings=tied)
    return transformers.OPTForCausalLM(made)


def _bert(settings: BERTSettings, vocabulary: Encoder) -> PreTrainedModel:
    """BERT: a masked transformer, layer norm last, tied word vectors (Devlin et al. 2019).

    It lacks the sentence-pair parts, which nothing here trains.
    """
    made = configuration(transformers.BertConfig, settings, vocabulary, _ENCODER, type_vocab_size=1)
    model = transformers.BertForMaskedLM(made)
    if settings.local_start:
        start_local(model.bert, vocabulary.mask)
    return model


def _roberta(settings: RoBERTaSettings, vocabulary: Encoder) -> PreTrainedModel:
    """RoBERTa: BERT with positions counted from the words that are not padding (Liu et al. 2019).

    Its positions begin after the number of ``<pad>``: the table has more rows.
    """
    more = {"max_position_embeddings": settings.max_positions + vocabulary.pad + 1, "type_vocab_size": 1}
    made = configuration(transformers.RobertaConfig, settings, vocabulary, _ENCODER, **more)
    model = transformers.RobertaForMaskedLM(made)
    if settings.local_start:
        start_local(model.roberta, vocabulary.mask)
    return model


def _deberta(settings: DeBERTaSettings, vocabulary: Encoder) -> PreTrainedModel:
    """DeBERTa: a masked transformer whose attention sees words and distances apart (He et al. 2021, 2023).

    Content-to-position and position-to-content attention, no positions in the input, in all variants.
    Without ``variant`` every distance has a vector and every layer its own projections of it, as in the first
    paper and the models of Jumelet and Zuidema (2023). ``v3`` has the settings of the released v3 models:
    distances in 256 buckets that widen logarithmically, their vectors normalised and projected as words are.
    ``v2`` adds a convolution over three words beside the first layer, as the released v2 models have it.
    As masked models v2 and v3 differ in nothing else: replaced-token detection is another objective.
    """
    made = configuration(
        transformers.DebertaV2Config,
        settings,
        vocabulary,
        _ENCODER,
        type_vocab_size=0,
        relative_attention=True,
        pos_att_type=["c2p", "p2c"],
        position_biased_input=False,
        **_DEBERTA[settings.variant],
    )
    model = transformers.DebertaV2ForMaskedLM(made)
    if settings.local_start:
        start_local_distances(model.deberta, vocabulary.mask)
    return model


def _lstm(settings: LSTMSettings, vocabulary: Encoder) -> PreTrainedModel:
    tied = settings.tie_words is not False
    return LSTMForCausalLM(configuration(LSTMConfig, settings, vocabulary, _RECURRENT, tie_word_embeddings=tied))


def _gated_cnn(settings: GatedCNNSettings, vocabulary: Encoder) -> PreTrainedModel:
    more = {"kernel_size": settings.kernel_size or 4, "tie_word_embeddings": settings.tie_words is not False}
    return GatedCNNForCausalLM(configuration(GatedCNNConfig, settings, vocabulary, _RECURRENT, **more))


def _adaptive(settings: AdaptiveSettings, vocabulary: Encoder) -> PreTrainedModel:
    """A transformer with adaptive softmax.

    Raises:
        InputError: a cutoff is not within the vocabulary, or the width is too small for so many.
    """
    cutoffs: Sequence[int] = settings.cutoffs or usual_cutoffs(len(vocabulary), settings.dim)
    if cutoffs[0] <= SPECIALS - 1 or cutoffs[-1] >= len(vocabulary):
        raise InputError(
            f"cutoffs must be from {SPECIALS} to {len(vocabulary) - 1}, within the vocabulary, not {list(cutoffs)}"
        )
    if settings.dim < SHRINK ** len(cutoffs):
        raise InputError(
            f"{len(cutoffs)} cutoffs need a dim of {SHRINK ** len(cutoffs)} or more, for each cluster's hidden states"
            f" are {SHRINK} times narrower than those before; it is {settings.dim}"
        )
    more = {"cutoffs": list(cutoffs), "activation_function": _GELU}
    return AdaptiveForCausalLM(configuration(AdaptiveConfig, settings, vocabulary, _GPT2, **more))


def usual_cutoffs(size: int, dim: int) -> list[int]:
    """A tenth and a third of the vocabulary, as far as its size and the width allow."""
    first = min(max(SPECIALS + 1, size // 10), size - 1)
    second = size // 3
    return [first, second] if second > first and dim >= SHRINK**2 else [first]


def _any_length(config: Any) -> None:
    """No limit of the length."""


def _roberta_positions(config: Any) -> int:
    """Rows of the position table that words can have."""
    return int(config.max_position_embeddings - config.pad_token_id - 1)


#: by name of the architecture
NETWORKS: dict[str, NetworkArchitecture[Any]] = {
    "gpt2": NetworkArchitecture(GPT2Settings, "lm_head", _gpt2),
    "llama": NetworkArchitecture(LlamaSettings, "lm_head", _llama),
    "opt": NetworkArchitecture(OPTSettings, "lm_head", _opt),
    "bert": NetworkArchitecture(BERTSettings, "cls", _bert),
    "roberta": NetworkArchitecture(RoBERTaSettings, "lm_head", _roberta, _roberta_positions),
    "deberta": NetworkArchitecture(DeBERTaSettings, "cls", _deberta),
    "lstm": NetworkArchitecture(LSTMSettings, "lm_head", _lstm, _any_length),
    "gated_cnn": NetworkArchitecture(GatedCNNSettings, "lm_head", _gated_cnn, _any_length),
    "adaptive": NetworkArchitecture(AdaptiveSettings, "head", _adaptive),
}

for _config, _network in (
    (LSTMConfig, LSTMForCausalLM),
    (GatedCNNConfig, GatedCNNForCausalLM),
    (AdaptiveConfig, AdaptiveForCausalLM),
):
    AutoConfig.register(_config.model_type, _config, exist_ok=True)
    AutoModelForCausalLM.register(_config, _network, exist_ok=True)
