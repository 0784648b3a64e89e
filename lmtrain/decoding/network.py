"""Networks of transformers, and those that are built like them, as steppers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from truesource.lmtrain.cache import cache_of_one_token, without_cache


class NetworkStepper:
    """Rows of text with what a causal network remembers of them, its ``past_key_values``.

    Args:
        model: takes ``input_ids`` and gives ``logits``. If it also takes and gives ``past_key_values`` that have
            ``batch_select_indices``, as all transformers with a `DynamicCache` do, it goes on from there; else it
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
        """Go on with some rows; see `Stepper.extend`."""
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
