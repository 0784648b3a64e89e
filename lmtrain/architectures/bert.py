"""BERT: a masked transformer, layer norm last, tied word vectors (Devlin et al. 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM

from lmtrain.architectures.base import Architecture
from lmtrain.config import ModelConfig
from lmtrain.tokenizer import Vocabulary

OFFSETS = (-1, 1, -2, 2)  #: where the heads of the first layer look under `local_start`, in turn
SHARPNESS = 2.0  #: how strongly, as the size of their query and key weights
POSITION_SCALE = 1.75  #: size of position vectors against that of word vectors, so that places outweigh words
CARRY = 5.6  #: gain of the first layer's value and output weights, so that what is seen outweighs the mask


def build(config: ModelConfig, vocabulary: Vocabulary) -> BertForMaskedLM:
    """A BERT with random weights, without the sentence-pair parts that nothing here trains."""
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=len(vocabulary),
            max_position_embeddings=config.max_positions,
            hidden_size=config.dim,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.ffn_dim or 4 * config.dim,
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
        _start_local(model, vocabulary.mask)
    return model


@torch.no_grad()
def _start_local(model: BertForMaskedLM, mask: int) -> None:
    """Let each head of the first layer start by looking one or two words to the left or right.

    A masked position holds no word, so until attention finds the neighbours there is nothing to learn but
    word frequencies; from small random weights that takes most of a short training. Position vectors
    start as sines and cosines of the place, as in Vaswani et al. (2017) with shorter periods; query and key
    weights pick out some of the waves, the query turned by the head's offset, so that query times key is
    the sum of cos(wave * (place + offset - other place)), which is largest where it should be. All of it
    is trained on from there.
    """
    config, embeddings = model.config, model.bert.embeddings
    heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    waves = math.pi * torch.logspace(0.0, -math.log10(64.0), config.hidden_size // 2)
    place = torch.arange(config.max_position_embeddings)[:, None] * waves
    scale = POSITION_SCALE * config.initializer_range * math.sqrt(2.0)
    positions = embeddings.position_embeddings.weight
    positions[:, : 2 * len(waves) : 2] = scale * place.cos()
    positions[:, 1 : 2 * len(waves) : 2] = scale * place.sin()
    embeddings.word_embeddings.weight[mask] = 0.0

    first = model.bert.encoder.layer[0].attention
    query, key = _blank(first.self.query), _blank(first.self.key)
    for head in range(heads):
        offset = OFFSETS[head % len(OFFSETS)]
        for i in range(width // 2):
            wave = (i * heads + head) % len(waves)  # the heads share the waves out
            row, column = head * width + 2 * i, 2 * wave
            turn = float(waves[wave]) * offset
            cos, sin = SHARPNESS * math.cos(turn), SHARPNESS * math.sin(turn)
            query[row : row + 2, column : column + 2] = torch.tensor([[cos, -sin], [sin, cos]])
            key[row : row + 2, column : column + 2] = SHARPNESS * torch.eye(2)
    for layer in (first.self.value, first.output.dense):
        nn.init.orthogonal_(layer.weight, gain=CARRY)


def _blank(layer: nn.Linear) -> Tensor:
    layer.weight.zero_()
    return layer.weight


ARCHITECTURE = Architecture(name="bert", objective="masked", head="cls", build=build)
