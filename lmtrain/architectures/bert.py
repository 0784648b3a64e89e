"""BERT: a masked transformer, layer norm last, tied word vectors (Devlin et al. 2019)."""

from __future__ import annotations

from transformers import BertConfig, BertForMaskedLM

from lmtrain.architectures.base import Architecture
from lmtrain.config import ModelConfig
from lmtrain.tokenizer import Vocabulary


def build(config: ModelConfig, vocabulary: Vocabulary) -> BertForMaskedLM:
    """A BERT with random weights, without the sentence-pair parts that nothing here trains."""
    return BertForMaskedLM(
        BertConfig(
            vocab_size=len(vocabulary),
            max_position_embeddings=config.max_positions,
            hidden_size=config.dim,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.ffn_dim or 4 * config.dim,
            hidden_dropout_prob=config.dropout,
            attention_probs_dropout_prob=config.dropout,
            type_vocab_size=1,
            initializer_range=config.init_std,
            bos_token_id=vocabulary.bos,
            eos_token_id=vocabulary.eos,
            pad_token_id=vocabulary.pad,
        )
    )


ARCHITECTURE = Architecture(name="bert", objective="masked", head="cls", build=build)
