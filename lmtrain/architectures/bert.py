"""BERT: a masked transformer, layer norm last, tied word vectors (Devlin et al. 2019)."""

from __future__ import annotations

from transformers import BertConfig, BertForMaskedLM

from lmtrain.architectures.base import Architecture
from lmtrain.architectures.local_start import start_local
from lmtrain.config import ModelConfig
from lmtrain.tokenizer import Encoder


def build(config: ModelConfig, vocabulary: Encoder) -> BertForMaskedLM:
    """A BERT with random weights, without the sentence-pair parts that nothing here trains."""
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=len(vocabulary),
            max_position_embeddings=config.max_positions,
            hidden_size=config.dim,
            num_hidden_layers=config.layers,
            num_attention_heads=config.n_heads,
            intermediate_size=config.inner,
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=config.dropout,
            initializer_range=config.init_std,
            type_vocab_size=1,
            bos_token_id=vocabulary.bos,
            eos_token_id=vocabulary.eos,
            pad_token_id=vocabulary.pad,
        )
    )
    if config.local_start:
        start_local(model.bert, vocabulary.mask)
    return model


ARCHITECTURE = Architecture(name="bert", objective="masked", head="cls", build=build)
