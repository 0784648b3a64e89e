"""Texts that are padded on their left, as `transformers` pads prompts, read as they are without the padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

import torch
from torch import Tensor
from transformers.modeling_outputs import CausalLMOutputWithPast

from truesource.lmtrain.architectures.states import RecurrentStates


def begins_with_padding(mask: Tensor | None) -> TypeGuard[Tensor]:
    """True if a mask (B, L) hides the first token of a text."""
    return mask is not None and mask.dim() == 2 and not bool(mask[:, 0].all())


def without_padding(
    read: Callable[[Tensor], CausalLMOutputWithPast], input_ids: Tensor, mask: Tensor
) -> CausalLMOutputWithPast:
    """Apply ``read`` to each text alone, texts of one padding together; zeros where padding is.

    Args:
        read: gives logits (b, l, V) of tokens (b, l), and perhaps hidden states and a `RecurrentStates`.
        input_ids: (B, L).
        mask: (B, L), 0 left of the first token of a text.
    """
    padding = (mask.cumsum(1) == 0).sum(1).clamp(max=input_ids.shape[1] - 1)
    order, found = [], []
    for width in sorted(set(padding.tolist())):
        rows = (padding == width).nonzero()[:, 0]
        order.append(rows)
        found.append(read(input_ids[rows, width:]))
    place = torch.cat(order).argsort()

    def joined(parts: list[Tensor]) -> Tensor:
        wide = [torch.cat([x.new_zeros(len(x), input_ids.shape[1] - x.shape[1], x.shape[2]), x], 1) for x in parts]
        return torch.cat(wide)[place]

    states = [output.past_key_values for output in found]
    after = None
    if states[0] is not None:
        dim = states[0].dim
        parts = zip(*(state.tensors for state in states), strict=True)
        after = RecurrentStates([torch.cat(tensors, dim).index_select(dim, place) for tensors in parts], dim)
    layers = [output.hidden_states for output in found]
    return CausalLMOutputWithPast(
        logits=joined([output.logits for output in found]),
        past_key_values=after,
        hidden_states=None if layers[0] is None else tuple(joined([*x]) for x in zip(*layers, strict=True)),
    )
