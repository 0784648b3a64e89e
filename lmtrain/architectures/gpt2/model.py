"""GPT-2: a causal transformer, layer norm first, tied word vectors (Radford et al. 2019)."""

from __future__ import annotations

from transformers import GPT2Config, GPT2LMHeadModel

from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.architectures.gpt2.settings import GPT2Settings
from truesource.lmtrain.tokenizer import Encoder


def build(config: GPT2Settings, vocabulary: Encoder) -> GPT2LMHeadModel:
    """A GPT-2 with random weights."""
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(vocabulary),
            n_positions=config.max_positions,
            n_embd=config.dim,
            n_layer=config.layers,
            n_head=config.n_heads,
            n_inner=config.inner,
            activation_function="gelu_pytorch_tanh",  # the same function as the default, in one fused operation
            resid_pdrop=config.dropout,
            embd_pdrop=config.dropout,
            attn_pdrop=config.dropout,
            initializer_range=config.init_std,
            bos_token_id=vocabulary.bos,
            eos_token_id=vocabulary.eos,
            pad_token_id=vocabulary.pad,
        )
    )


ARCHITECTURE = NetworkArchitecture(GPT2Settings, head="lm_head", build=build)
