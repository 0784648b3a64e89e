"""Gated CNN: causal convolutions with gated linear units in residual blocks (Dauphin et al. 2017)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import CausalLMOutputWithPast

from truesource.lmtrain.architectures.left_padding import begins_with_padding, without_padding
from truesource.lmtrain.architectures.states import RecurrentStates


class GatedCNNConfig(PreTrainedConfig):  # type: ignore[misc]
    """Size of a `GatedCNNForCausalLM`."""

    model_type = "gated_cnn"

    vocab_size: int = 0
    hidden_size: int = 128
    num_hidden_layers: int = 6
    kernel_size: int = 4
    dropout: float = 0.0
    initializer_range: float = 0.02
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    tie_word_embeddings: bool = True


class ConvolutionBlock(nn.Module):
    """Adds to its input a gated linear unit, (X * W + b) sigmoid(X * V + c), of the last ``kernel_size`` positions."""

    def __init__(self, config: GatedCNNConfig) -> None:
        super().__init__()
        self.reach = config.kernel_size - 1
        self.norm = nn.LayerNorm(config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.conv = nn.Conv1d(config.hidden_size, 2 * config.hidden_size, config.kernel_size)

    def forward(self, hidden: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
        """The output (B, L, D), and what the convolution must see of it later.

        Args:
            hidden: (B, L, D).
            before: (B, kernel_size - 1, D), what the convolution saw last; zeros at the start of a text.
        """
        seen = torch.cat([before, self.dropout(self.norm(hidden)).to(before.dtype)], dim=1)
        found = functional.glu(self.conv(seen.transpose(1, 2)), dim=1).transpose(1, 2)
        return hidden + found, seen[:, seen.shape[1] - self.reach :]


class GatedCNNForCausalLM(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """Word vectors, residual blocks of one convolution each, a layer norm, a softmax with bias.

    A position sees the last ``layers * (kernel_size - 1) + 1`` tokens and nothing before them. Layer norm
    before each convolution stands in for the weight normalisation of the paper. Inputs may be of any
    length. Step by step it goes on from ``past_key_values``: `RecurrentStates` of the last inputs of each convolution.
    """

    _is_stateful = True  # what it has read cannot be taken back, as speculative decoding would
    config_class = GatedCNNConfig
    _tied_weights_keys = {"lm_head.weight": "embed_tokens.weight"}

    def __init__(self, config: GatedCNNConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(ConvolutionBlock(config) for _ in range(config.num_hidden_layers))
        self.norm = nn.LayerNorm(config.hidden_size)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # `generate` then takes what the first call returns

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, nn.Conv1d):  # twice the variance that keeps sizes, for gates start half closed
            init.normal_(module.weight, 0.0, math.sqrt(4.0 / (module.kernel_size[0] * module.in_channels)))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: RecurrentStates | None = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """Logits (B, L, V) of the token after each position.

        ``attention_mask`` (B, L) says where padding is left of a text, as ``generate`` pads; padding right of a text
        changes nothing, and with ``past_key_values`` there may be none.

        ``hidden_states``, where asked for: the word vectors as they enter, then the output of each block, (B, L, D),
        that of the last one after the layer norm.
        """
        if past_key_values is None and begins_with_padding(attention_mask):
            read = partial(self.forward, use_cache=use_cache, output_hidden_states=output_hidden_states)
            return without_padding(read, input_ids, attention_mask)
        hidden = self.dropout(self.embed_tokens(input_ids))
        nothing = hidden.new_zeros(len(hidden), self.config.kernel_size - 1, hidden.shape[2])
        before = [nothing] * len(self.blocks) if past_key_values is None else past_key_values.tensors
        after, states = [], []
        for block, seen in zip(self.blocks, before, strict=True):
            states.append(hidden)
            hidden, kept = block(hidden, seen)
            after.append(kept)
        hidden = self.norm(hidden)
        return CausalLMOutputWithPast(
            logits=self.lm_head(self.dropout(hidden)),
            past_key_values=RecurrentStates(after, 0) if use_cache else None,
            hidden_states=(*states, hidden) if output_hidden_states else None,
        )
