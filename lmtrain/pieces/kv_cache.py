"""What a causal network must keep of many texts to go on with each: three ways, by kind of network.

A text is held as an array of numbers: rows of a `Store`, or its tokens.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from truesource.grammar.support.arrays import IntArray
from truesource.lmtrain.architectures.states import RecurrentStates
from truesource.lmtrain.data import pack
from truesource.lmtrain.decoding.steppers import cache_of_one_token, without_cache
from truesource.lmtrain.loading import token_count

NUMBERS = 2**27  #: approximate maximum of keys, values or states (in numbers) that are gathered for one call


class Store:
    """Tensors that grow by rows and lose those that nothing needs any more."""

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def __iter__(self) -> Any:
        return iter(self._tensors)

    def append(self, rows: Sequence[Tensor]) -> IntArray:
        """Numbers of new rows, (R,); each tensor is (R, ...)."""
        n = len(rows[0])
        end = self._used + n
        if not self._tensors:
            self._tensors = [row.new_empty((max(16, 2 * n), *row.shape[1:])) for row in rows]
        elif end > len(self._tensors[0]):
            self._resize(max(end, 2 * len(self._tensors[0])), torch.arange(self._used, device=rows[0].device))
        for tensor, row in zip(self._tensors, rows, strict=True):
            tensor[self._used : end] = row
        numbers = np.arange(self._used, end)
        self._used = end
        return numbers

    def compact(self, held: Sequence[IntArray]) -> list[IntArray]:
        """Keep only the rows that are ``held``; their new numbers."""
        if not self._tensors:
            return [*held]
        live = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *held]))
        number = np.full(self._used, -1)
        number[live] = np.arange(len(live))
        self._resize(max(16, 2 * len(live)), torch.from_numpy(live).to(self._tensors[0].device))
        self._used = len(live)
        return [number[some] for some in held]

    def _resize(self, room: int, rows: Tensor) -> None:
        for i, tensor in enumerate(self._tensors):
            self._tensors[i] = tensor.new_empty((room, *tensor.shape[1:]))
            self._tensors[i][: len(rows)] = tensor.index_select(0, rows)


class Memory(Protocol):
    """What a network keeps of texts."""

    def cost(self, lengths: IntArray) -> IntArray:
        """(R,) of reading one more token of texts of these lengths, the same unit as ``budget``."""

    @property
    def budget(self) -> int:
        """How much one call may cost, rows times the dearest."""

    def read(self, held: Sequence[IntArray], tokens: IntArray) -> tuple[Tensor, list[IntArray], int]:
        """Read one more token of R texts.

        Args:
            held: what is held of each; empty arrays before the first token, of all texts or of none.
            tokens: (R,).

        Returns:
            Logits (R, V), what is then held, and how many tokens the network was run at, padding included.
        """

    def compact(self, held: Sequence[IntArray]) -> list[IntArray]:
        """Forget all but what is ``held``; what it is called from now on."""


class KeyValues:
    """Of a transformer: keys and values of each token, once, however many texts go on from it.

    The rows of one call may be of different lengths: shorter ones are padded on the left, with a mask and with
    position numbers. That serves wherever positions enter by number or by distance; see `reads_padded`.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters
        self._store = Store()
        self._size = 1

    def cost(self, lengths: IntArray) -> IntArray:
        """Numbers of keys and values gathered."""
        return (lengths + 1) * self._size

    @property
    def budget(self) -> int:
        """Of them."""
        return NUMBERS

    def read(self, held: Sequence[IntArray], tokens: IntArray) -> tuple[Tensor, list[IntArray], int]:
        """See `Memory.read`."""
        device = self._model.device
        inputs: dict[str, Any] = {"input_ids": torch.from_numpy(tokens)[:, None].to(device)}
        lengths = np.array([len(some) for some in held])
        width = int(lengths.max())
        cache = DynamicCache()
        if width:
            column = np.arange(width)
            own = column >= width - lengths[:, None]
            table = np.zeros(own.shape, dtype=np.int64)
            table[own] = np.concatenate(held)
            cache = self._gather(torch.from_numpy(table).to(device))
            if not own.all():
                mask = np.concatenate([own, np.ones((len(own), 1), dtype=bool)], axis=1)
                inputs["attention_mask"] = torch.from_numpy(mask.astype(np.int64)).to(device)
            if self._takes_positions:
                inputs["position_ids"] = torch.from_numpy(lengths)[:, None].to(device)
        output = self._model(**inputs, past_key_values=cache, use_cache=True)
        last = [x[:, :, -1] for layer in output.past_key_values.layers for x in (layer.keys, layer.values)]
        self._size = sum(x[0].numel() for x in last)
        new = self._store.append(last)
        longer = [np.append(some, number) for some, number in zip(held, new.tolist(), strict=True)]
        return output.logits[:, -1], longer, len(tokens)

    def _gather(self, table: Tensor) -> DynamicCache:
        """A cache of the rows ``table`` (R, L) of the store."""
        found = [x.index_select(0, table.flatten()).unflatten(0, table.shape).transpose(1, 2) for x in self._store]
        cache = DynamicCache()
        for keys, values in zip(found[::2], found[1::2], strict=True):
            layer = DynamicLayer()
            layer.dtype, layer.device = keys.dtype, keys.device
            layer.keys, layer.values, layer.is_initialized = keys, values, True
            cache.layers.append(layer)
        return cache

    def compact(self, held: Sequence[IntArray]) -> list[IntArray]:
        """See `Memory.compact`."""
        return self._store.compact(held)


class FixedStates:
    """Of a recurrent or convolutional network: `RecurrentStates` of one size however long the text."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._store = Store()
        self._dim = 0
        self._size = 1

    def cost(self, lengths: IntArray) -> IntArray:
        """Numbers of states gathered."""
        return np.full(len(lengths), self._size)

    @property
    def budget(self) -> int:
        """Of them."""
        return NUMBERS

    def read(self, held: Sequence[IntArray], tokens: IntArray) -> tuple[Tensor, list[IntArray], int]:
        """See `Memory.read`; either all texts or none are at their beginning."""
        device = self._model.device
        before = None
        if len(held[0]):
            rows = torch.from_numpy(np.concatenate(held)).to(device)
            before = RecurrentStates(
                [x.index_select(0, rows).movedim(0, self._dim).contiguous() for x in self._store], self._dim
            )
        ids = torch.from_numpy(tokens)[:, None].to(device)
        output = self._model(input_ids=ids, past_key_values=before, use_cache=True)
        states: RecurrentStates = output.past_key_values
        self._dim = states.dim
        last = [x.movedim(self._dim, 0) for x in states.tensors]
        self._size = sum(x[0].numel() for x in last)
        return output.logits[:, -1], [*self._store.append(last)[:, None]], len(tokens)

    def compact(self, held: Sequence[IntArray]) -> list[IntArray]:
        """See `Memory.compact`."""
        return self._store.compact(held)


class WholeTexts:
    """Of any other network: the tokens, which are all read again at every step."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model

    def cost(self, lengths: IntArray) -> IntArray:
        """Tokens read."""
        return lengths + 1

    @property
    def budget(self) -> int:
        """Of them, such that their logits fit in memory."""
        return max(256, NUMBERS // token_count(self._model) // 8)

    def read(self, held: Sequence[IntArray], tokens: IntArray) -> tuple[Tensor, list[IntArray], int]:
        """See `Memory.read`."""
        texts = [np.append(some, token) for some, token in zip(held, tokens.tolist(), strict=True)]
        table, own = pack(texts, int(tokens[0]))
        ids = torch.from_numpy(table).to(self._model.device)
        logits = self._model(input_ids=ids, **without_cache(self._model)).logits
        last = torch.from_numpy(own.sum(axis=1) - 1).to(logits.device)
        return logits[torch.arange(len(texts), device=logits.device), last], texts, table.size

    def compact(self, held: Sequence[IntArray]) -> list[IntArray]:
        """Nothing is stored."""
        return [*held]


@torch.inference_mode()
def memory_of(model: PreTrainedModel) -> type[KeyValues] | type[FixedStates] | type[WholeTexts]:
    """How a network remembers, found by running it at a few tokens."""
    kept = cache_of_one_token(model)
    if isinstance(kept, RecurrentStates):
        return FixedStates
    layers = kept.layers if isinstance(kept, DynamicCache) else []
    plain = all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) and layer.is_initialized for layer in layers)
    return KeyValues if layers and plain and reads_padded(model) else WholeTexts


@torch.inference_mode()
def reads_padded(model: PreTrainedModel) -> bool:
    """Whether a transformer reads texts of different lengths together as it reads each alone."""
    size = token_count(model)
    pad = getattr(model.config, "pad_token_id", None)
    a, b, c = ([token for token in range(max(0, size - 4), size) if token != pad] * 3 or [0] * 3)[-3:]
    texts = [np.array([a, b, c, a, a]), np.array([b, a])]
    memory = KeyValues(model)
    held: list[IntArray] = []
    for text in texts:
        some: IntArray = np.zeros(0, dtype=np.int64)
        for token in text[:-1]:
            _, (some,), _ = memory.read([some], np.array([token]))
        held.append(some)
    found, _, _ = memory.read(held, np.array([text[-1] for text in texts]))
    alone, _, _ = WholeTexts(model).read([text[:-1] for text in texts], np.array([text[-1] for text in texts]))
    return bool((found - alone).abs().max() <= 1e-4 * alone.abs().max().clamp(min=1.0))
