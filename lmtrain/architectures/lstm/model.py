"""The LSTM as training builds it."""

from __future__ import annotations

from transformers import AutoConfig, AutoModelForCausalLM

from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.architectures.lstm.network import LSTMConfig, LSTMForCausalLM
from truesource.lmtrain.architectures.lstm.settings import LSTMSettings
from truesource.lmtrain.tokenizer import Encoder


def build(config: LSTMSettings, vocabulary: Encoder) -> LSTMForCausalLM:
    """An LSTM with random weights; word vectors are tied unless the settings say otherwise."""
    return LSTMForCausalLM(
        LSTMConfig(
            vocab_size=len(vocabulary),
            hidden_size=config.dim,
            num_hidden_layers=config.layers,
            dropout=config.dropout,
            initializer_range=config.init_std,
            tie_word_embeddings=config.tie_words is not False,
            bos_token_id=vocabulary.bos,
            eos_token_id=vocabulary.eos,
            pad_token_id=vocabulary.pad,
        )
    )


AutoConfig.register("lstm", LSTMConfig, exist_ok=True)
AutoModelForCausalLM.register(LSTMConfig, LSTMForCausalLM, exist_ok=True)
ARCHITECTURE = NetworkArchitecture(LSTMSettings, head="lm_head", build=build, longest=lambda config: None)
