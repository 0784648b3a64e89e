"""The cost of training a model: parameters, tokens, and floating-point operations counted on a real batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.backends import cudnn, mkldnn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedTokenizerFast

from truesource.generator.columns import CodedSentences
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.data import Batch, TrainingBatches, to_device
from truesource.lmtrain.device import kept_random_states
from truesource.lmtrain.model_registry import network_architecture_for
from truesource.lmtrain.scoring import predictor
from truesource.lmtrain.subword_vocabulary import encoder_of
from truesource.lmtrain.word_vocabulary import encode_rows

LOOKED_AT = 256  #: micro-batches of the beginning of training, of which the one of the most usual size is counted


@dataclass(frozen=True)
class ParameterCounts:
    """Numbers of parameters; tied ones count once."""

    total: int
    without_embeddings: int  #: no vectors of words or positions, nor an output matrix that is tied to them
    multiplied: int  #: all but look-up tables: N of the rule 6 N D


@dataclass(frozen=True)
class TrainingCost:
    """The cost of training one model."""

    parameters: ParameterCounts
    steps: int  #: optimiser steps
    tokens: int  #: words (or pieces) and sentence ends seen in all steps, repetitions included
    epochs: float
    flops_per_step: int  #: see `count_flops`; all micro-batches of a step
    tokens_per_step: float

    @property
    def flops(self) -> int:
        """Floating-point operations of the whole training."""
        return self.flops_per_step * self.steps

    @property
    def rule(self) -> float:
        """The rule of thumb 6 N D (Kaplan et al. 2020), N being ``parameters.multiplied``, D the tokens seen."""
        return 6.0 * self.parameters.multiplied * self.tokens


def count_parameters(model: nn.Module) -> ParameterCounts:
    """Count a network's parameters with and without embeddings."""
    embedded: dict[int, nn.Parameter] = {}
    others: dict[int, nn.Parameter] = {}
    for module in model.modules():
        table = embedded if isinstance(module, nn.Embedding) else others
        table.update((id(p), p) for p in module.parameters(recurse=False))
    both = embedded | others
    return ParameterCounts(
        total=sum(p.numel() for p in both.values()),
        without_embeddings=sum(p.numel() for key, p in both.items() if key not in embedded),
        multiplied=sum(p.numel() for p in others.values()),
    )


def count_flops(model: nn.Module, head: str, batch: Batch) -> int:
    """Count the floating-point operations of one forward and backward pass over a batch, its loss included.

    Counted by `torch.utils.flop_counter.FlopCounterMode`: matrix products and convolutions, one multiply-add as two;
    sums, activations, normalisation, look-ups and the optimiser are not. Attention is counted as matrix products over
    the whole square of positions, on every device, though a fused kernel may leave out the half that is masked.
    Padding is computed, so it counts.

    Args:
        model: the network; weights, gradients and mode are as before afterwards.
        head: attribute of its output layer, as in `NetworkArchitecture.head`.
        batch: as `truesource.lmtrain.data` makes them, on the model's device.
    """
    mode, gradients = model.training, [p.grad for p in model.parameters()]
    counter = FlopCounterMode(display=False)
    try:
        with kept_random_states(), _countable(), predictor(model, head) as predict:
            model.train()
            with counter:
                predict.loss(model, batch).backward()  # type: ignore[no-untyped-call]
    finally:
        model.train(mode)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient
    return int(counter.get_total_flops())


@contextmanager
def _countable() -> Iterator[None]:
    """Run attention and recurrent layers as the matrix products they are; the counter does not know fused kernels."""
    before = mkldnn.set_flags(False)[0]  # type: ignore[no-untyped-call]
    try:
        with sdpa_kernel(SDPBackend.MATH), cudnn.flags(enabled=False):
            yield
    finally:
        mkldnn.set_flags(before)  # type: ignore[no-untyped-call]


def training_cost(
    model: ModelConfig,
    training: TrainConfig,
    sentences: CodedSentences,
    tokenizer: PreTrainedTokenizerFast,
    *,
    seed: int,
) -> TrainingCost:
    """Estimate the cost of `truesource.lmtrain.training.train` with the same arguments, in one process.

    Nothing is trained. The FLOPs of one micro-batch are multiplied by the numbers of micro-batches and steps. It is the
    one of median size among the first `LOOKED_AT` of the run; the mean size over its size is a factor.

    Args:
        model: shape.
        training: batches and duration.
        sentences: the train split.
        tokenizer: the model's.
        seed: of the run.
    """
    architecture, vocabulary = network_architecture_for(model), encoder_of(tokenizer)
    rows = encode_rows(vocabulary, sentences).filled()
    batches = TrainingBatches(rows, vocabulary, architecture.objective, training, seed=seed)
    with torch.random.fork_rng(devices=[]):
        built = architecture.build(model, vocabulary)
    looked_at = [batches[i] for i in range(min(LOOKED_AT, len(batches)))]
    sizes = np.array([batch["input_ids"].numel() for batch in looked_at])
    usual = int(np.argsort(sizes, kind="stable")[len(sizes) // 2])
    flops = count_flops(built, architecture.head, to_device(looked_at[usual], built.device)) * float(
        sizes.mean() / sizes[usual]
    )
    epochs, tokens = batches.progress(batches.n_steps)
    return TrainingCost(
        parameters=count_parameters(built),
        steps=batches.n_steps,
        tokens=tokens,
        epochs=epochs,
        flops_per_step=round(flops * batches.group),
        tokens_per_step=tokens / batches.n_steps,
    )
