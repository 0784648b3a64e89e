"""Functions of PyTorch modules: next-word distributions from logits over the tokens of exact targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch

from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.tokenizer import UNK


class WordColumns(Protocol):
    """Words that a module tells apart, and how it reads sentences."""

    @property
    def columns(self) -> tuple[tuple[str, ...], IntArray]:
        """Words, ``<unk>`` among them if it has a token; the token of each, then of the end, (V+1,)."""

    @property
    def size(self) -> int:
        """Number of tokens."""

    def inputs(self, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        """Return ``<bos> w1 .. wn`` of each sentence, padded, (B, L)."""


def distributions_of(
    module: torch.nn.Module, targets: WordColumns
) -> tuple[list[str], Callable[[list[list[str]]], list[FloatArray]]]:
    """Return the words of a module, and a function that gives its distributions as `FunctionModel` takes them.

    Args:
        module: from ``input_ids`` (B, L) to logits (B, L, E), or to an object that has them.
        targets: the words and tokens that the logits are over.
    """
    words, tokens = targets.columns
    tokenised = [word for word in words if word != UNK]
    of_words = torch.from_numpy(np.array([tokens[words.index(word)] for word in tokenised], dtype=np.int64))
    unknown = int(tokens[words.index(UNK)]) if UNK in words else None
    end, vocabulary = int(tokens[-1]), frozenset(tokenised)

    def readable(sentence: list[str]) -> list[str]:
        """Replace words without a token, which have probability 0 whatever follows, by any other word."""
        return [word if word in vocabulary or unknown is not None else tokenised[0] for word in sentence]

    def distributions(sentences: list[list[str]]) -> list[FloatArray]:
        device = next((weight.device for weight in module.parameters()), torch.device("cpu"))
        training = module.training
        module.eval()
        try:
            with torch.no_grad():
                output = module(targets.inputs([readable(sentence) for sentence in sentences]).to(device))
        finally:
            module.train(training)
        logits = getattr(output, "logits", output)
        if not isinstance(logits, torch.Tensor) or logits.ndim != 3 or logits.shape[-1] < targets.size:
            raise InputError(
                f"the module has to return logits (sentences, positions, {targets.size}), or an object with logits",
                code="not-scores",
            )
        log_probs = torch.log_softmax(logits.detach().double(), dim=-1).cpu()
        absent = torch.full(log_probs.shape[:-1], -torch.inf, dtype=torch.float64)
        of_unknown = absent if unknown is None else log_probs[..., unknown]
        table = torch.cat([log_probs[..., of_words], of_unknown[..., None], log_probs[..., end, None]], dim=-1).numpy()
        return [table[i, : len(sentence) + 1] for i, sentence in enumerate(sentences)]

    return tokenised, distributions
