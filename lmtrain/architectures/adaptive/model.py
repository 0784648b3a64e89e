"""Transformer with adaptive softmax: frequent words first, rare ones in clusters (Grave et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, Cache, GPT2Config, GPT2Model, GPT2PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.adaptive.settings import AdaptiveSettings
from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.heads import TargetHead
from truesource.lmtrain.tokenizer import Encoder

SHRINK = 4  #: each cluster's hidden states are so many times narrower than those of the one before
SPECIALS = 5  #: tokens that stand before the words; they belong to the first cluster


class AdaptiveConfig(GPT2Config):  # type: ignore[misc]
    """Size of an `AdaptiveForCausalLM`: that of its GPT-2, and the first token of each cluster but the first."""

    model_type = "adaptive"

    cutoffs: list[int] | None = None
    tie_word_embeddings: bool = False


class AdaptiveHead(TargetHead):
    """Log probabilities, normalised, by way of clusters of tokens."""

    def __init__(self, config: AdaptiveConfig) -> None:
        super().__init__()
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(
            config.n_embd, config.vocab_size, list(config.cutoffs or ()), SHRINK
        )

    def forward(self, hidden: Tensor, targets: Tensor | None = None) -> Tensor:
        """Log probabilities (..., V) of all tokens; with ``targets`` (T,), of those alone (T,), from (T, D)."""
        with torch.autocast(hidden.device.type, enabled=False):
            rows = hidden.flatten(0, -2).to(self.softmax.head.weight.dtype)
            if targets is None:
                everything: Tensor = self.softmax.log_prob(rows)
                return everything.reshape(*hidden.shape[:-1], -1)
            found: Tensor = self.softmax(rows, targets).output
            if torch.distributed.is_available() and torch.distributed.is_initialized():
                # a cluster that no target of this process is in must still take part in the sum of gradients
                found = found + 0.0 * sum(weight.sum() for weight in self.softmax.tail.parameters())
            return found


class AdaptiveForCausalLM(GPT2PreTrainedModel):  # type: ignore[misc]
    """GPT-2 up to the last hidden states, then an adaptive softmax in place of one over all words.

    Words are numbered by frequency, so clusters are ranges of numbers; each is reached by way of one entry of
    the first, and has hidden states four times narrower than the one before. Logits are log probabilities.
    In training no full row of them is made. It has no ``generate``; step by step it goes on from
    ``past_key_values``, a `transformers.DynamicCache`.
    """

    config_class = AdaptiveConfig

    def __init__(self, config: AdaptiveConfig) -> None:
        super().__init__(config)
        self.transformer = GPT2Model(config)
        self.head = AdaptiveHead(config)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """Log probabilities (B, L, V) of the token after each position; ``hidden_states`` are those of GPT-2."""
        found = self.transformer(
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=past_key_values,
            use_cache=use_cache,
            output_hidden_states=output_hidden_states,
        )
        return CausalLMOutputWithPast(
            logits=self.head(found.last_hidden_state),
            past_key_values=found.past_key_values,
            hidden_states=found.hidden_states,
        )


def usual_cutoffs(size: int, dim: int) -> list[int]:
    """A tenth and a third of the vocabulary, as far as its size and the width allow."""
    first = min(max(SPECIALS + 1, size // 10), size - 1)
    second = size // 3
    return [first, second] if second > first and dim >= SHRINK**2 else [first]


def build(config: AdaptiveSettings, vocabulary: Encoder) -> AdaptiveForCausalLM:
    """An adaptive-softmax transformer with random weights.

    Raises:
        InputError: a cutoff is not within the vocabulary, or the width is too small for so many.
    """
    cutoffs: Sequence[int] = config.cutoffs or usual_cutoffs(len(vocabulary), config.dim)
    if cutoffs[0] <= SPECIALS - 1 or cutoffs[-1] >= len(vocabulary):
        raise InputError(
            f"cutoffs must be from {SPECIALS} to {len(vocabulary) - 1}, within the vocabulary, not {list(cutoffs)}"
        )
    if config.dim < SHRINK ** len(cutoffs):
        raise InputError(
            f"{len(cutoffs)} cutoffs need a dim of {SHRINK ** len(cutoffs)} or more, for each cluster's hidden states"
            f" are {SHRINK} times narrower than those before; it is {config.dim}"
        )
    return AdaptiveForCausalLM(
        AdaptiveConfig(
            cutoffs=list(cutoffs),
            vocab_size=len(vocabulary),
            n_positions=config.max_positions,
            n_embd=config.dim,
            n_layer=config.layers,
            n_head=config.n_heads,
            n_inner=config.inner,
            activation_function="gelu_pytorch_tanh",
            resid_pdrop=config.dropout,
            embd_pdrop=config.dropout,
            attn_pdrop=config.dropout,
            initializer_range=config.init_std,
            bos_token_id=vocabulary.bos,
            eos_token_id=vocabulary.eos,
            pad_token_id=vocabulary.pad,
        )
    )


AutoConfig.register("adaptive", AdaptiveConfig, exist_ok=True)
AutoModelForCausalLM.register(AdaptiveConfig, AdaptiveForCausalLM, exist_ok=True)
ARCHITECTURE = NetworkArchitecture(AdaptiveSettings, head="head", build=build)
