"""OPT: GPT-2 with rectified linear units and positions counted from the attention mask (Zhang et al. 2022)."""

from __future__ import annotations

from transformers import OPTConfig, OPTForCausalLM

from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.architectures.opt.settings import OPTSettings
from truesource.lmtrain.tokenizer import Encoder


def build(config: OPTSettings, vocabulary: Encoder) -> OPTForCausalLM:
    """An OPT with random weights, layer norm first; word vectors are tied unless the settings say otherwise."""
    return OPTForCausalLM(
        OPTConfig(
            vocab_size=len(vocabulary),
            max_position_embeddings=config.max_positions,
            hidden_size=config.dim,
            word_embed_proj_dim=config.dim,
            num_hidden_layers=config.layers,
            num_attention_heads=config.n_heads,
            ffn_dim=config.inner,
            dropout=config.dropout,
            attention_dropout=config.dropout,
            init_std=config.init_std,
            tie_word_embeddings=config.tie_words is not False,
            bos_token_id=vocabulary.bos,
            eos_token_id=vocabulary.eos,
            pad_token_id=vocabulary.pad,
        )
    )


ARCHITECTURE = NetworkArchitecture(OPTSettings, head="lm_head", build=build)
