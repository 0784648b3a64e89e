"""BERT: a masked transformer, layer norm last, tied word vectors (Devlin et al. 2019)."""

from __future__ import annotations

from transformers import BertConfig, BertForMaskedLM

from truesource.lmtrain.architectures.base import Architecture
from truesource.lmtrain.architectures.encoders import encoder_settings
from truesource.lmtrain.architectures.local_start import start_local
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.tokenizer import Encoder


def build(config: ModelConfig, vocabulary: Encoder) -> BertForMaskedLM:
    """A BERT with random weights, without the sentence-pair parts that nothing here trains."""
    model = BertForMaskedLM(BertConfig(**encoder_settings(config, vocabulary), type_vocab_size=1))
    if config.local_start:
        start_local(model.bert, vocabulary.mask)
    return model


ARCHITECTURE = Architecture(name="bert", objective="masked", head="cls", build=build)
