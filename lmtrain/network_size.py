"""How many tokens a network knows."""

from __future__ import annotations

from transformers import PreTrainedModel

from truesource.lmtrain.own.shared import MODEL_TYPE


def token_count(model: PreTrainedModel) -> int:
    """Number of tokens that a network has vectors for; of an architecture of one's own, logits."""
    if model.config.model_type == MODEL_TYPE:
        return int(model.config.vocab_size)
    return int(model.get_input_embeddings().weight.shape[0])
