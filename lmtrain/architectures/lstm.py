"""LSTM language model: stacked recurrent layers (Hochreiter and Schmidhuber 1997; Zaremba et al. 2014)."""

from __future__ import annotations

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


class LSTMConfig(PreTrainedConfig):  # type: ignore[misc]
    """Size of an `LSTMForCausalLM`."""

    model_type = "lstm"

    vocab_size: int = 0
    hidden_size: int = 128
    num_hidden_layers: int = 2
    dropout: float = 0.0
    initializer_range: float = 0.02
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    tie_word_embeddings: bool = True


class LSTMForCausalLM(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
    """Word vectors, stacked LSTM layers of the same width, a softmax with bias.

    Word vectors enter times the root of their width, as in Vaswani et al. (2017), so that tied ones, which must
    be small at the output, are not too weak at the input. Dropout falls on them, between the layers and on the
    last hidden states. Forget gates start open (bias 1). Inputs may be of any length. Step by step it
    goes on from ``past_key_values``, a `RecurrentStates` of hidden and cell states.
    """

    _is_stateful = True  # what it has read cannot be taken back, as speculative decoding would
    config_class = LSTMConfig
    _tied_weights_keys = {"lm_head.weight": "embed_tokens.weight"}

    def __init__(self, config: LSTMConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.lstm = nn.LSTM(
            config.hidden_size,
            config.hidden_size,
            config.num_hidden_layers,
            dropout=config.dropout if config.num_hidden_layers > 1 else 0.0,
            batch_first=True,
        )
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # `generate` then takes what the first call returns

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if not isinstance(module, nn.LSTM):
            super()._init_weights(module)
            return
        bound = module.hidden_size**-0.5
        for name, parameter in module.named_parameters():
            if name.startswith("weight"):
                init.uniform_(parameter, -bound, bound)
            else:
                forget_open = torch.zeros_like(parameter)
                if name.startswith("bias_ih"):
                    forget_open[module.hidden_size : 2 * module.hidden_size] = 1.0
                init.copy_(parameter, forget_open)

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

        ``hidden_states``, where asked for: the word vectors as they enter, then the output of each layer, (B, L, D).
        """
        if past_key_values is None and begins_with_padding(attention_mask):
            read = partial(self.forward, use_cache=use_cache, output_hidden_states=output_hidden_states)
            return without_padding(read, input_ids, attention_mask)
        before = None if past_key_values is None else tuple(past_key_values.tensors)
        words = self.dropout(self.embed_tokens(input_ids) * self.config.hidden_size**0.5)
        states = None
        if output_hidden_states:
            states, after = self._layer_by_layer(words, before)
            hidden = states[-1]
        else:
            hidden, after = self.lstm(words, before)
        return CausalLMOutputWithPast(
            logits=self.lm_head(self.dropout(hidden)),
            past_key_values=RecurrentStates(after, 1) if use_cache else None,
            hidden_states=states,
        )

    def _layer_by_layer(
        self, words: Tensor, before: tuple[Tensor, ...] | None
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The inputs of each layer and the output of the last one, and hidden and cell states after the text."""
        if before is None:
            nothing = words.new_zeros(self.lstm.num_layers, len(words), self.lstm.hidden_size)
            before = (nothing, nothing)
        outputs, after, inputs = [words], [], words
        for layer, weights in enumerate(self.lstm.all_weights):
            start = [state[layer : layer + 1] for state in before]
            hidden, *ends = torch.lstm(inputs, start, [*weights], True, 1, 0.0, self.training, False, True)
            outputs.append(hidden)
            after.append(ends)
            inputs = functional.dropout(hidden, self.lstm.dropout, self.training)
        return tuple(outputs), tuple(torch.cat(layers) for layers in zip(*after, strict=True))
