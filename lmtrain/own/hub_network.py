"""A module of one's own as `transformers` opens it where truesource is not installed; this file travels in folders.

A folder holds it beside the person's own file, and ``modeling_truesource_own.py``, which joins the two: see
`truesource.lmtrain.model_code`. In truesource itself the module is a `truesource.lmtrain.own.network.OwnNetwork`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast, MaskedLMOutput

from truesource.lmtrain.architectures.left_padding import begins_with_padding, without_padding
from truesource.lmtrain.own.shared import MODEL_TYPE, OURS, changed_settings

FIRST_WORD = 5  #: the tokens before it are special


class OwnConfig(PreTrainedConfig):  # type: ignore[misc]
    """The contents of ``config.json`` of a module of one's own."""

    model_type = MODEL_TYPE

    vocab_size: int = 0
    code: str = ""  # as the person named it; never run because it stands here
    code_digest: str | None = None
    code_settings: dict[str, Any] | None = None
    objective: str = "causal"
    max_positions: int | None = None
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    tie_word_embeddings: bool = True


class HubNetwork(PreTrainedModel):  # type: ignore[misc]
    """Base of causal and masked ones: the module, made as in training; all its numbers come from the folder."""

    config_class = OwnConfig
    main_input_name = "input_ids"
    make: Callable[..., nn.Module]  #: the class or function of the person

    def __init__(self, config: OwnConfig) -> None:
        """Make the module, on the CPU: code of others may need numbers where `transformers` has none yet."""
        super().__init__(config)
        with torch.device("cpu"), torch.random.fork_rng(devices=[]), _single_precision():
            self.module = type(self).make(config.vocab_size, **_arguments(type(self).make, config))
            _give_shapes(self.module, config.vocab_size)
        saved = self.state_dict()
        self._unsaved = {name: buffer.clone() for name, buffer in self.named_buffers() if name not in saved}
        self._tied_weights_keys = tied_weights(self)
        self.post_init()

    @torch.no_grad()
    def initialize_weights(self) -> None:
        """The code has set the weights; `transformers` empties the buffers that no file holds, which are put back."""
        for name, value in self._unsaved.items():
            self.get_buffer(name).copy_(value)

    def get_input_embeddings(self) -> None:
        """None is known."""

    def get_output_embeddings(self) -> None:
        """None is known."""

    def _read(self, input_ids: Tensor, mask: Tensor, *, hidden_states: bool) -> dict[str, Any]:
        """``logits`` and ``hidden_states`` (None unless asked for) of the module."""
        states = None
        if hidden_states:
            method = getattr(self.module, "hidden_states", None)
            if method is None:
                raise ValueError(f"{self.config.code} has no method hidden_states")
            states = tuple(method(input_ids, mask))
        return {"logits": self.module(input_ids, mask), "hidden_states": states}


class CausalHubNetwork(HubNetwork, GenerationMixin):  # type: ignore[misc]
    """One that predicts each token from those before it. ``generate`` reads the text again at every token."""

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False

    def prepare_inputs_for_generation(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any
    ) -> dict[str, Any]:
        """The whole text, however much of it was read before."""
        return {"input_ids": input_ids, "attention_mask": attention_mask}

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **_: Any,
    ) -> CausalLMOutputWithPast:
        """Logits (B, L, V) of the token after each position.

        ``attention_mask`` (B, L) says where padding is left of a text, as ``generate`` pads; the module itself sees
        no padding. Padding right of a text changes nothing.

        Raises:
            ValueError: hidden states are asked for, and the module has no method that returns them.
        """

        def read(ids: Tensor) -> CausalLMOutputWithPast:
            return CausalLMOutputWithPast(**self._read(ids, torch.ones_like(ids), hidden_states=output_hidden_states))

        if begins_with_padding(attention_mask):
            return without_padding(read, input_ids, attention_mask)
        return read(input_ids)


class MaskedHubNetwork(HubNetwork):
    """One that predicts each token from all others."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **_: Any,
    ) -> MaskedLMOutput:
        """Logits (B, L, V) of the token at each position; ``attention_mask`` (B, L) is 0 at padding.

        Raises:
            ValueError: hidden states are asked for, and the module has no method that returns them.
        """
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        return MaskedLMOutput(**self._read(input_ids, mask, hidden_states=output_hidden_states))


def random_tokens(size: int, rows: int, length: int) -> Tensor:
    """Numbers of words (rows, length), the same at every call; special tokens are not among them."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(FIRST_WORD if size > FIRST_WORD + 1 else 0, size, (rows, length), generator=generator)


def tied_weights(model: nn.Module) -> dict[str, str]:
    """Parameters and buffers that are the same tensor as an earlier one, and that one, as patterns of their names."""
    first: dict[int, str] = {}
    pairs = {}
    for named in (model.named_parameters, model.named_buffers):
        for name, tensor in named(remove_duplicate=False):
            if id(tensor) in first:
                pairs[_exactly(name)] = _exactly(first[id(tensor)])
            first.setdefault(id(tensor), name)
    return pairs


@contextmanager
def _single_precision() -> Iterator[None]:
    """Inside the block new tensors have 32-bit floats, as in training, whatever a caller wants weights to be."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _give_shapes(module: nn.Module, size: int) -> None:
    """Show lazy modules two tokens, out of ``size``, from which they get their shapes; others stay as they are."""
    if any(isinstance(parameter, UninitializedParameter) for parameter in module.parameters()):
        ids = random_tokens(size, 1, 2)
        with torch.no_grad():
            module.eval()(ids, torch.ones_like(ids))
        module.train()


def _arguments(make: Callable[..., nn.Module], config: OwnConfig) -> dict[str, Any]:
    try:
        parameters = dict(list(inspect.signature(make).parameters.items())[1:])
    except (TypeError, ValueError):  # such as of a class written in C
        parameters = {}
    ours = {name: getattr(config, name) for name in OURS if name in parameters}
    return changed_settings(parameters, {**(config.code_settings or {}), **ours})


def _exactly(name: str) -> str:
    return name.replace(".", r"\.") + "$"
