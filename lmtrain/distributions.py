"""Full distributions of trained networks at every position of sentences of one length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from truesource.generator.language_model import LogDistributions
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.data import causal_batch, one_mask_batch, to_device
from truesource.lmtrain.heads import predictor
from truesource.lmtrain.tokenizer import NO_TOKEN, WordVocabulary


@torch.inference_mode()
def causal_distributions(
    model: nn.Module, head: str, vocabulary: WordVocabulary, sentences: Sequence[Sequence[str]]
) -> Iterator[LogDistributions]:
    """Each word and the end given those before: the network runs once, its output layer position by position.

    Raises:
        InputError: the sentences differ in length, one is empty, or the logits are not finite.
    """
    rows, n = _rows(vocabulary, sentences)
    device = next(model.parameters()).device
    columns = [*vocabulary.word_ids.tolist(), vocabulary.unk, vocabulary.eos]
    layer = getattr(model, head)
    hidden, rest = _hidden(model, layer, causal_batch(rows, vocabulary)["input_ids"].to(device))
    for position in range(n + 1):
        yield LogDistributions(position, _log_softmax(layer(hidden[:, position], *rest), columns))


@torch.inference_mode()
def masked_distributions(
    model: nn.Module, head: str, vocabulary: WordVocabulary, sentences: Sequence[Sequence[str]]
) -> Iterator[LogDistributions]:
    """Each word given all others: the network runs once a position, with that word of every sentence masked.

    Raises:
        InputError: as `causal_distributions`.
    """
    rows, n = _rows(vocabulary, sentences)
    model.eval()
    device = next(model.parameters()).device
    columns = [*vocabulary.word_ids.tolist(), vocabulary.unk]
    for position in range(n):
        batch = to_device(one_mask_batch(rows, np.full(len(rows), position), vocabulary), device)
        with predictor(model, head) as predict:
            logits = predict(model, batch)
        yield LogDistributions(position, _log_softmax(logits, columns))


def _rows(vocabulary: WordVocabulary, sentences: Sequence[Sequence[str]]) -> tuple[list[IntArray], int]:
    lengths = {len(sentence) for sentence in sentences}
    if len(lengths) != 1 or 0 in lengths:
        raise InputError("full distributions are taken of sentences of one length, 1 or more; group them by length")
    return vocabulary.encode(sentences), lengths.pop()


def _hidden(model: nn.Module, layer: nn.Module, inputs: Tensor) -> tuple[Tensor, tuple[Any, ...]]:
    """What the output layer is given for all positions, (W, n+1, dim), and its other arguments.

    The layer itself sees the first position only, so that the logits of all never stand in memory.
    """
    seen: list[tuple[Any, ...]] = []

    def keep(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        seen.append(arguments)
        return (arguments[0][:, :1], *arguments[1:])

    handle = layer.register_forward_pre_hook(keep)
    try:
        model.eval()
        model(input_ids=inputs, use_cache=False)
    finally:
        handle.remove()
    ((hidden, *rest),) = seen
    return hidden, tuple(rest)


def _log_softmax(logits: Tensor, columns: Sequence[int]) -> FloatArray:
    """Log softmax in float64 over everything the model emits, at some columns, (W, E) nats.

    A column `NO_TOKEN` is -inf: the model never emits what it has no token for.
    """
    numbers = torch.tensor(columns, device=logits.device)
    exact = torch.log_softmax(logits.double(), dim=1)[:, numbers]
    exact[:, numbers == NO_TOKEN] = -torch.inf
    if bool(exact.isnan().any()):
        raise InputError("the model's logits are not finite; its weights are damaged or its training diverged")
    found: FloatArray = exact.cpu().numpy()
    return found
