"""Transformer with adaptive softmax: frequent words first, rare ones in clusters (Grave et al. 2017)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, GenerationMixin, GPT2Config, GPT2Model, GPT2PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from truesource.lmtrain.architectures.target_head import TargetHead

SHRINK = 4  #: each cluster's hidden states are so many times narrower than those of the one before


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


class AdaptiveForCausalLM(GPT2PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """GPT-2 up to the last hidden states, then an adaptive softmax in place of one over all words.

    Words are numbered by frequency, so clusters are ranges of numbers; each is reached by way of one entry of
    the first, and has hidden states four times narrower than the one before. Logits are log probabilities.
    In training no full row of them is made. Step by step it goes on from ``past_key_values``, a
    `transformers.DynamicCache`.
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
