"""What the configurations of BERT, RoBERTa and DeBERTa have in common."""

from __future__ import annotations

from typing import Any

from truesource.lmtrain.architectures.settings import EncoderSettings
from truesource.lmtrain.tokenizer import Encoder


def encoder_settings(config: EncoderSettings, vocabulary: Encoder, *, positions: int | None = None) -> dict[str, Any]:
    """Size, dropout, initial weights and special tokens; ``positions`` are rows of the table, if more than places."""
    return {
        "vocab_size": len(vocabulary),
        "max_position_embeddings": positions or config.max_positions,
        "hidden_size": config.dim,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.inner,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.dropout,
        "initializer_range": config.init_std,
        "bos_token_id": vocabulary.bos,
        "eos_token_id": vocabulary.eos,
        "pad_token_id": vocabulary.pad,
    }
