"""Llama: a causal transformer, rotary positions, RMS norm first, gated feed-forward layers (Touvron et al. 2023)."""

from __future__ import annotations

from transformers import LlamaConfig, LlamaForCausalLM

from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.architectures.llama.settings import LlamaSettings
from truesource.lmtrain.tokenizer import Encoder


def build(config: LlamaSettings, vocabulary: Encoder) -> LlamaForCausalLM:
    """A Llama with random weights.

    ``kv_heads`` below ``heads`` is grouped-query attention (Ainslie et al. 2023). Dropout is in the
    attention only, the one place where the architecture has it. Output weights are a matrix of their own
    unless ``tie_words`` is true.
    """
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocabulary),
            max_position_embeddings=config.max_positions,
            hidden_size=config.dim,
            num_hidden_layers=config.layers,
            num_attention_heads=config.n_heads,
            num_key_value_heads=config.n_kv_heads,
            intermediate_size=config.inner,
            attention_dropout=config.dropout,
            initializer_range=config.init_std,
            tie_word_embeddings=bool(config.tie_words),
            bos_token_id=vocabulary.bos,
            eos_token_id=vocabulary.eos,
            pad_token_id=vocabulary.pad,
        )
    )


ARCHITECTURE = NetworkArchitecture(LlamaSettings, head="lm_head", build=build)
