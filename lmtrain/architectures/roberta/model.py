"""RoBERTa: BERT without sentence pairs, positions counted from the words that are not padding (Liu et al. 2019)."""

from __future__ import annotations

from typing import Any

from transformers import RobertaConfig, RobertaForMaskedLM

from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.architectures.encoders import encoder_settings
from truesource.lmtrain.architectures.local_start import start_local
from truesource.lmtrain.architectures.roberta.settings import RoBERTaSettings
from truesource.lmtrain.tokenizer import Encoder


def build(config: RoBERTaSettings, vocabulary: Encoder) -> RobertaForMaskedLM:
    """A RoBERTa with random weights. Its positions begin after the number of ``<pad>``: the table has more rows."""
    model = RobertaForMaskedLM(
        RobertaConfig(
            **encoder_settings(config, vocabulary, positions=config.max_positions + vocabulary.pad + 1),
            type_vocab_size=1,
        )
    )
    if config.local_start:
        start_local(model.roberta, vocabulary.mask)
    return model


def longest(config: Any) -> int:
    """Rows of the position table that words can have."""
    return int(config.max_position_embeddings - config.pad_token_id - 1)


ARCHITECTURE = NetworkArchitecture(RoBERTaSettings, head="lm_head", build=build, longest=longest)
