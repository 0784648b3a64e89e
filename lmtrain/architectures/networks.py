"""The networks that are trained, by name: `NETWORKS`.

A network that `transformers` has is imported when it is built. One that it lacks is a module next to this one, named as
the architecture, which travels with its models (`truesource.lmtrain.model_code`) and is registered here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from truesource.generator.objectives import Objective
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.adaptive import SHRINK, AdaptiveConfig, AdaptiveForCausalLM
from truesource.lmtrain.architectures.gated_cnn import GatedCNNConfig, GatedCNNForCausalLM
from truesource.lmtrain.architectures.lstm import LSTMConfig, LSTMForCausalLM
from truesource.lmtrain.architectures.settings import (
    AdaptiveSettings,
    BERTSettings,
    DeBERTaSettings,
    GatedCNNSettings,
    GPT2Settings,
    LlamaSettings,
    LSTMSettings,
    MaskedDiffusionSettings,
    NetworkSettings,
    OPTSettings,
    RoBERTaSettings,
)
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.word_vocabulary import Encoder

SettingsType = TypeVar("SettingsType", bound=ModelConfig)
SPECIALS = 5  #: special tokens, numbered before the words; under adaptive softmax they belong to the first cluster

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
_DEBERTA_V3: dict[str, str | int] = {"share_att_key": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm"}
_DEBERTA: dict[str | None, dict[str, str | int]] = {
    None: {},
    "v3": _DEBERTA_V3,
    "v2": {**_DEBERTA_V3, "conv_kernel_size": 3, "conv_act": "gelu"},
}

# start of small masked models, see `start_local`
OFFSETS = (-1, 1, -2, 2)  #: offsets that the heads of the first layer look at, in turn
SHARPNESS = 2.0  #: size of their query and key weights
POSITION_SCALE = 1.75  #: size of position vectors relative to word vectors, so that places outweigh words
DISTANCE_SHARPNESS = 3.2  #: size of query biases and key weights if attention sees distances
CARRY = 5.6  #: gain of the first layer's value and output weights, so that what is seen outweighs the mask


def positions(config: Any) -> int | None:
    """Return the length limit that most configurations state themselves."""
    return int(config.max_position_embeddings)


@dataclass(frozen=True)
class NetworkArchitecture(Generic[SettingsType]):
    """A family of networks of any size.

    ``build`` must return a `PreTrainedModel` with random weights that takes ``input_ids`` (and
    ``attention_mask``) and returns ``logits`` (B, L, V); nothing may be fetched.

    A causal model must ignore the tokens to the right of a position even without a mask. Called with
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
        """The direction that it predicts in: from the words before, or from all others."""
        return self.settings.objective


def configuration(
    make: Callable[..., Any],
    settings: NetworkSettings,
    vocabulary: Encoder,
    keywords: Mapping[str, str],
    **others: Any,
) -> Any:
    """Return a configuration of a network: its size, dropout, initial weights and special tokens.

    Args:
        make: class of the configuration.
        settings: of the model.
        vocabulary: the tokeniser.
        keywords: names of settings, by keyword of ``make``.
        others: further keywords of ``make``; they override the settings.
    """
    tokens = {"bos_token_id": vocabulary.bos, "eos_token_id": vocabulary.eos, "pad_token_id": vocabulary.pad}
    shape = {keyword: getattr(settings, setting) for keyword, setting in keywords.items()}
    return make(vocab_size=len(vocabulary), **tokens, **{**shape, **others})


def _gpt2(settings: GPT2Settings, vocabulary: Encoder) -> PreTrainedModel:
    """Build a GPT-2: a causal transformer, layer norm first, tied word vectors (Radford et al. 2019)."""
    config = configuration(transformers.GPT2Config, settings, vocabulary, _GPT2, activation_function=_GELU)
    return transformers.GPT2LMHeadModel(config)


def _llama(settings: LlamaSettings, vocabulary: Encoder) -> PreTrainedModel:
    """Build a Llama: causal, rotary positions, RMS norm first, gated feed-forward layers (Touvron et al. 2023).

    ``kv_heads`` below ``heads`` is grouped-query attention (Ainslie et al. 2023). Dropout is in the attention only,
    the one place where the architecture has it.
    """
    tied = bool(settings.tie_words)
    config = configuration(transformers.LlamaConfig, settings, vocabulary, _LLAMA, tie_word_embeddings=tied)
    return transformers.LlamaForCausalLM(config)


def _opt(settings: OPTSettings, vocabulary: Encoder) -> PreTrainedModel:
    """Build an OPT: GPT-2 with ReLU and positions counted from the attention mask (Zhang et al. 2022)."""
    tied = settings.tie_words is not False
    config = configuration(transformers.OPTConfig, settings, vocabulary, _OPT, tie_word_embeddings=tied)
    return transformers.OPTForCausalLM(config)


def _bert(settings: BERTSettings | MaskedDiffusionSettings, vocabulary: Encoder) -> PreTrainedModel:
    """Build a BERT: a masked transformer, layer norm last, tied word vectors (Devlin et al. 2019).

    It lacks the sentence-pair parts, which nothing here trains.
    """
    config = configuration(transformers.BertConfig, settings, vocabulary, _ENCODER, type_vocab_size=1)
    model = transformers.BertForMaskedLM(config)
    if settings.local_start:
        start_local(model.bert, vocabulary.mask)
    return model


def _diffusion(settings: MaskedDiffusionSettings, vocabulary: Encoder) -> PreTrainedModel:
    """Build a masked diffusion model with absorbing states, on BERT (Sahoo et al. 2024; Nie et al. 2025).

    Its configuration says so by ``objective``; without it the same network would be scored one masked word at a time.
    The network does not see the time, which follows from the number of masked words.
    """
    model = _bert(settings, vocabulary)
    model.config.objective = settings.objective
    return model


def _roberta(settings: RoBERTaSettings, vocabulary: Encoder) -> PreTrainedModel:
    """Build a RoBERTa: a BERT with positions counted from the words that are not padding (Liu et al. 2019).

    Its positions begin after the number of ``<pad>``: the table has more rows.
    """
    more = {"max_position_embeddings": settings.max_positions + vocabulary.pad + 1, "type_vocab_size": 1}
    config = configuration(transformers.RobertaConfig, settings, vocabulary, _ENCODER, **more)
    model = transformers.RobertaForMaskedLM(config)
    if settings.local_start:
        start_local(model.roberta, vocabulary.mask)
    return model


def _deberta(settings: DeBERTaSettings, vocabulary: Encoder) -> PreTrainedModel:
    """Build a DeBERTa: masked, its attention sees words and distances apart (He et al. 2021, 2023).

    Content-to-position and position-to-content attention, no positions in the input, in all variants.
    Without ``variant`` every distance has a vector and every layer its own projections of it, as in the first
    paper and the models of Jumelet and Zuidema (2023). ``v3`` has the settings of the released v3 models:
    distances in 256 buckets that widen logarithmically, their vectors normalised and projected as words are.
    ``v2`` adds a convolution over three words next to the first layer, as in the released v2 models.
    As masked models v2 and v3 differ in nothing else: replaced-token detection is another objective.
    """
    config = configuration(
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
    model = transformers.DebertaV2ForMaskedLM(config)
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
    """Return a transformer with adaptive softmax.

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
            f"{len(cutoffs)} cutoffs need a dim of {SHRINK ** len(cutoffs)} or more, since each cluster's hidden"
            f" states are {SHRINK} times narrower than the previous cluster's; it is {settings.dim}"
        )
    more = {"cutoffs": list(cutoffs), "activation_function": _GELU}
    return AdaptiveForCausalLM(configuration(AdaptiveConfig, settings, vocabulary, _GPT2, **more))


def usual_cutoffs(size: int, dim: int) -> list[int]:
    """Return a tenth and a third of the vocabulary, as far as its size and the width allow."""
    first = min(max(SPECIALS + 1, size // 10), size - 1)
    second = size // 3
    return [first, second] if second > first and dim >= SHRINK**2 else [first]


@torch.no_grad()
def start_local(body: PreTrainedModel, mask: int) -> None:
    """Let each head of the first layer of a BERT start by looking one or two words to the left or right.

    A masked position holds no word, so until attention finds the neighbours there is nothing to learn but word
    frequencies; from small random weights that takes most of a short training.

    Position vectors start as sines and cosines of the place, as in Vaswani et al. (2017) with shorter periods; query
    and key weights pick out some of the waves, the query turned by the head's offset, so that query times key is the
    sum of cos(wave * (place + offset - other place)), which peaks at the intended place. All of it is then trained
    further.
    """
    config, embeddings = body.config, body.embeddings
    heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    waves = _waves(config.hidden_size)
    place = torch.arange(config.max_position_embeddings)[:, None] * waves
    scale = POSITION_SCALE * config.initializer_range * math.sqrt(2.0)
    positions = embeddings.position_embeddings.weight
    positions[:, : 2 * len(waves) : 2] = scale * place.cos()
    positions[:, 1 : 2 * len(waves) : 2] = scale * place.sin()
    embeddings.word_embeddings.weight[mask] = 0.0

    first = body.encoder.layer[0].attention
    query, key = _blank(first.self.query), _blank(first.self.key)
    for head in range(heads):
        offset = OFFSETS[head % len(OFFSETS)]
        for i in range(width // 2):
            wave = (i * heads + head) % len(waves)  # the heads share the waves out
            row, column = head * width + 2 * i, 2 * wave
            turn = float(waves[wave]) * offset
            cos, sin = SHARPNESS * math.cos(turn), SHARPNESS * math.sin(turn)
            query[row : row + 2, column : column + 2] = torch.tensor([[cos, -sin], [sin, cos]])
            key[row : row + 2, column : column + 2] = SHARPNESS * torch.eye(2)
    _carry(first.self.value, first.output.dense)


@torch.no_grad()
def start_local_distances(body: PreTrainedModel, mask: int) -> None:
    """Do the same for a DeBERTa, whose layers see distances by projections of their own.

    The vectors of distances start as sines and cosines. The query of every word starts as one vector for
    each head, its bias, which picks out some of the waves, turned by the head's offset.
    """
    config = body.config
    heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    waves = _waves(config.hidden_size)
    distances = body.encoder.rel_embeddings.weight
    distance = (torch.arange(len(distances)) - len(distances) // 2)[:, None] * waves
    distances[:, : 2 * len(waves) : 2] = distance.cos()
    distances[:, 1 : 2 * len(waves) : 2] = distance.sin()
    body.embeddings.word_embeddings.weight[mask] = 0.0

    first = body.encoder.layer[0].attention
    _blank(first.self.query_proj)
    key, bias = _blank(first.self.pos_key_proj), first.self.query_proj.bias
    for head in range(heads):
        offset = OFFSETS[head % len(OFFSETS)]
        for i in range(width // 2):
            wave = (i * heads + head) % len(waves)
            row, column = head * width + 2 * i, 2 * wave
            turn = float(waves[wave]) * offset
            bias[row : row + 2] = DISTANCE_SHARPNESS * torch.tensor([math.cos(turn), -math.sin(turn)])
            key[row : row + 2, column : column + 2] = DISTANCE_SHARPNESS * torch.eye(2)
    _carry(first.self.value_proj, first.output.dense)


def _waves(dim: int) -> Tensor:
    """Return the frequencies, one for two numbers of a vector: periods of 2 to 128 words."""
    return math.pi * torch.logspace(0.0, -math.log10(64.0), dim // 2)


def _carry(*layers: nn.Linear) -> None:
    for layer in layers:
        nn.init.orthogonal_(layer.weight, gain=CARRY)


def _blank(layer: nn.Linear) -> Tensor:
    layer.weight.zero_()
    return layer.weight


def _any_length(config: Any) -> None:
    """Return no limit of the length."""


def _roberta_positions(config: Any) -> int:
    """Return the number of rows of the position table that words can have."""
    return int(config.max_position_embeddings - config.pad_token_id - 1)


#: by name of the architecture
NETWORKS: dict[str, NetworkArchitecture[Any]] = {
    "gpt2": NetworkArchitecture(GPT2Settings, "lm_head", _gpt2),
    "llama": NetworkArchitecture(LlamaSettings, "lm_head", _llama),
    "opt": NetworkArchitecture(OPTSettings, "lm_head", _opt),
    "bert": NetworkArchitecture(BERTSettings, "cls", _bert),
    "diffusion": NetworkArchitecture(MaskedDiffusionSettings, "cls", _diffusion),
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
