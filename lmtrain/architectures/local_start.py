"""A start for small masked models: heads of the first layer that look at the neighbouring words.

A masked position holds no word, so until attention finds the neighbours there is nothing to learn but word
frequencies; from small random weights that takes most of a short training.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

OFFSETS = (-1, 1, -2, 2)  #: where the heads of the first layer look under `local_start`, in turn
SHARPNESS = 2.0  #: how strongly, as the size of their query and key weights
POSITION_SCALE = 1.75  #: size of position vectors against that of word vectors, so that places outweigh words
DISTANCE_SHARPNESS = 3.2  #: the same where attention sees distances, as the size of query biases and key weights
CARRY = 5.6  #: gain of the first layer's value and output weights, so that what is seen outweighs the mask


@torch.no_grad()
def start_local(body: PreTrainedModel, mask: int) -> None:
    """Let each head of the first layer of a BERT start by looking one or two words to the left or right.

    Position vectors start as sines and cosines of the place, as in Vaswani et al. (2017) with shorter periods;
    query and key weights pick out some of the waves, the query turned by the head's offset, so that query times
    key is the sum of cos(wave * (place + offset - other place)), which is largest where it should be. All of it
    is trained on from there.
    """
    config, embeddings = body.config, body.embeddings
    heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    waves = _waves(config.hidden_size)
    place = torch.arange(config.max_position_embeddings)[:, None] * waves
    scale = POSITION_SCALE * config.initializer_range * math.sqrt(2.0)
    positions = embeddings.position_embeddings.weight
    positions[:, : 2 * len(waves) : 2] = scale * place.cos()
    positions[:, 1 : 2 * len(waves) : 2] = scale * place.sin()
    embeddings.word_embeddings.weight[mask] = 0.0

    first = body.encoder.layer[0].attention
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
    _carry(first.self.value, first.output.dense)


@torch.no_grad()
def start_local_distances(body: PreTrainedModel, mask: int) -> None:
    """The same for a DeBERTa, whose layers see distances by projections of their own.

    The vectors of distances start as sines and cosines. The query of every word starts as one vector for
    each head, its bias, which picks out some of the waves, turned by the head's offset.
    """
    config = body.config
    heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    waves = _waves(config.hidden_size)
    distances = body.encoder.rel_embeddings.weight
    distance = (torch.arange(len(distances)) - len(distances) // 2)[:, None] * waves
    distances[:, : 2 * len(waves) : 2] = distance.cos()
    distances[:, 1 : 2 * len(waves) : 2] = distance.sin()
    body.embeddings.word_embeddings.weight[mask] = 0.0

    first = body.encoder.layer[0].attention
    _blank(first.self.query_proj)
    key, bias = _blank(first.self.pos_key_proj), first.self.query_proj.bias
    for head in range(heads):
        offset = OFFSETS[head % len(OFFSETS)]
        for i in range(width // 2):
            wave = (i * heads + head) % len(waves)
            row, column = head * width + 2 * i, 2 * wave
            turn = float(waves[wave]) * offset
            bias[row : row + 2] = DISTANCE_SHARPNESS * torch.tensor([math.cos(turn), -math.sin(turn)])
            key[row : row + 2, column : column + 2] = DISTANCE_SHARPNESS * torch.eye(2)
    _carry(first.self.value_proj, first.output.dense)


def _waves(dim: int) -> Tensor:
    """Frequencies, one for two numbers of a vector: periods of 2 to 128 words."""
    return math.pi * torch.logspace(0.0, -math.log10(64.0), dim // 2)


def _carry(*layers: nn.Linear) -> None:
    for layer in layers:
        nn.init.orthogonal_(layer.weight, gain=CARRY)


def _blank(layer: nn.Linear) -> Tensor:
    layer.weight.zero_()
    return layer.weight
