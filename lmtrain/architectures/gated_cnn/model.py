"""The gated CNN as training builds it."""

from __future__ import annotations

from transformers import AutoConfig, AutoModelForCausalLM

from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.architectures.gated_cnn.network import GatedCNNConfig, GatedCNNForCausalLM
from truesource.lmtrain.architectures.gated_cnn.settings import GatedCNNSettings
from truesource.lmtrain.tokenizer import Encoder


def build(config: GatedCNNSettings, vocabulary: Encoder) -> GatedCNNForCausalLM:
    """A gated CNN with random weights; word vectors are tied unless the settings say otherwise."""
    return GatedCNNForCausalLM(
        GatedCNNConfig(
            vocab_size=len(vocabulary),
            hidden_size=config.dim,
            num_hidden_layers=config.layers,
            kernel_size=config.kernel_size or 4,
            dropout=config.dropout,
            initializer_range=config.init_std,
            tie_word_embeddings=config.tie_words is not False,
            bos_token_id=vocabulary.bos,
            eos_token_id=vocabulary.eos,
            pad_token_id=vocabulary.pad,
        )
    )


AutoConfig.register("gated_cnn", GatedCNNConfig, exist_ok=True)
AutoModelForCausalLM.register(GatedCNNConfig, GatedCNNForCausalLM, exist_ok=True)
ARCHITECTURE = NetworkArchitecture(GatedCNNSettings, head="lm_head", build=build, longest=lambda config: None)
