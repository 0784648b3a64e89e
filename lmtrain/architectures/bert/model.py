"""BERT: a masked transformer, layer norm last, tied word vectors (Devlin et al. 2019)."""

from __future__ import annotations

from transformers import BertConfig, BertForMaskedLM

from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.architectures.bert.settings import BERTSettings
from truesource.lmtrain.architectures.encoders import encoder_settings
from truesource.lmtrain.architectures.local_start import start_local
from truesource.lmtrain.tokenizer import Encoder


def build(config: BERTSettings, vocabulary: Encoder) -> BertForMaskedLM:
    """A BERT with random weights, without the sentence-pair parts that nothing here trains."""
    model = BertForMaskedLM(BertConfig(**encoder_settings(config, vocabulary), type_vocab_size=1))
    if config.local_start:
        start_local(model.bert, vocabulary.mask)
    return model


ARCHITECTURE = NetworkArchitecture(BERTSettings, head="cls", build=build)
