"""Whether a causal network can go on with a text, or must read it all again."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from transformers import PreTrainedModel

from truesource.lmtrain.network_size import token_count


@torch.inference_mode()
def cache_of_one_token(model: PreTrainedModel) -> Any | None:
    """What a network returns to be given back with the tokens that follow, after one token.

    None: it returns nothing of the kind. It may keep something within itself (RecurrentGemma) or under another name
    (Mamba), or nothing at all.
    """
    if not {"past_key_values", "use_cache"} <= inspect.signature(model.forward).parameters.keys():
        return None
    token = torch.tensor([[token_count(model) // 2]], device=model.device)
    return getattr(model(input_ids=token, use_cache=True), "past_key_values", None)


def without_cache(model: PreTrainedModel) -> dict[str, bool]:
    """Options of a call after which nothing that the network keeps will be used."""
    return {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}
