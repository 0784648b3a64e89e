"""Networks of transformers, and functions of whole prefixes, as steppers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from truesource.grammar.support.arrays import FloatArray
from truesource.lmtrain.decoding.alphabet import Alphabet
from truesource.lmtrain.loading import token_count


@torch.inference_mode()
def cache_of_one_token(model: PreTrainedModel) -> Any | None:
    """Return the cache that a network returns after one token, to be given back with the tokens that follow.

    None: it returns nothing of the kind. It may keep something within itself (RecurrentGemma) or under another name
    (Mamba), or nothing at all.
    """
    if not {"past_key_values", "use_cache"} <= inspect.signature(model.forward).parameters.keys():
        return None
    token = torch.tensor([[token_count(model) // 2]], device=model.device)
    return getattr(model(input_ids=token, use_cache=True), "past_key_values", None)


def without_cache(model: PreTrainedModel) -> dict[str, bool]:
    """Return the options of a call after which nothing that the network keeps will be used."""
    return {"use_cache": False} if "use_cache" in inspect.signature(model.forward).parameters else {}


class PrefixStepper:
    """A `truesource.lmtrain.decoding.sampling.Stepper` that reads every prefix afresh, each different one once."""

    def __init__(self, following: Callable[[list[list[str]]], FloatArray], alphabet: Alphabet) -> None:
        """Step along prefixes.

        Args:
            following: from prefixes of one length to log probabilities (R, K) of the next token, nats.
            alphabet: the K tokens.
        """
        self._following, self._alphabet = following, alphabet
        self._rows = torch.zeros((0, 0), dtype=torch.int64)

    def start(self, n: int) -> Tensor:
        """Begin ``n`` empty rows; log probabilities (n, K) of their first token, nats."""
        self._rows = torch.zeros((n, 0), dtype=torch.int64)
        return self._next()

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Extend some rows by one token each; see `Stepper.extend`."""
        self._rows = torch.cat([self._rows[parents], tokens[:, None]], dim=1)
        return self._next()

    def _next(self) -> Tensor:
        different, place = np.unique(self._rows.numpy(), axis=0, return_inverse=True)
        result = self._following([self._alphabet.spell(row) for row in different.tolist()])
        return torch.from_numpy(np.asarray(result, dtype=np.float64)[place.reshape(-1)])


class NetworkStepper:
    """Rows of text with what a causal network remembers of them, its ``past_key_values``.

    Args:
        model: takes ``input_ids`` and gives ``logits``. If it also takes and gives ``past_key_values`` that have
            ``batch_select_indices``, as all transformers with a `DynamicCache` do, it continues from them; else it
            reads the whole rows again at each step.
        bos: number of the token that every text begins with.
    """

    def __init__(self, model: PreTrainedModel, bos: int) -> None:
        self._model, self._bos = model, bos
        self._cached = hasattr(cache_of_one_token(model), "batch_select_indices")
        self._memory: Any = None  # the cache, or the tokens (R, L) read so far
        self._rows = 0

    def start(self, n: int) -> Tensor:
        """Begin n rows; see `Stepper.start`."""
        self._memory = None
        first = self._run(torch.tensor([self._bos], device=self._model.device))
        self._select(torch.zeros(n, dtype=torch.int64, device=self._model.device))
        return first.expand(n, -1)

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Extend some rows; see `Stepper.extend`."""
        if len(parents) != self._rows or not torch.equal(parents, torch.arange(self._rows, device=parents.device)):
            self._select(parents)
        return self._run(tokens)

    @torch.inference_mode()
    def _select(self, rows: Tensor) -> None:
        if self._cached:
            self._memory.batch_select_indices(rows)
        else:
            self._memory = self._memory.index_select(0, rows)
        self._rows = len(rows)

    @torch.inference_mode()
    def _run(self, tokens: Tensor) -> Tensor:
        self._rows = len(tokens)
        if self._cached:
            output = self._model(input_ids=tokens[:, None], past_key_values=self._memory, use_cache=True)
            self._memory = output.past_key_values
        else:
            before = [] if self._memory is None else [self._memory]
            self._memory = torch.cat([*before, tokens[:, None]], dim=1)
            output = self._model(input_ids=self._memory, **without_cache(self._model))
        return torch.log_softmax(output.logits[:, -1], dim=1, dtype=torch.float64)
