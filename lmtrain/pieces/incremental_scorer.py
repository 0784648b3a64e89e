"""Reading many texts at once with a causal network, piece by piece.

To continue a text, a network keeps something of it, in one of three ways, by kind of network: `KeyValues`,
`FixedStates`, `WholeTexts`. A text is held as an array of numbers: rows of a `Store`, or its tokens.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.lmtrain.architectures.states import RecurrentStates
from truesource.lmtrain.data import by_length, pack
from truesource.lmtrain.decoding.steppers import cache_of_one_token, without_cache
from truesource.lmtrain.loading import token_count
from truesource.lmtrain.pieces.scoring import check_beginning, check_length
from truesource.lmtrain.pieces.words import Marks
from truesource.lmtrain.scoring import require_finite

NUMBERS = 2**27  #: approximate maximum of keys, values or states (in numbers) that are gathered for one call
TOGETHER = 2**22  #: logits that `NetworkScorer.log_any` adds up at once


class NetworkScorer:
    """A `truesource.generator.piece_model.IncrementalScorer` of a causal network.

    The network reads a token when a continuation of it is requested, so the last piece of an abandoned text costs
    nothing, and equal texts are one context, read once. All texts of a request are read in as few calls as memory
    allows, whatever their lengths. Values are softmaxes in float64 over all the network emits: the probability of
    special tokens is lost.

    Args:
        memory: keeps states of texts; no other scorer may use it.
        marks: the tokens around a text.
        longest: tokens that the network reads, the one before the text included; None: any number.

    Raises:
        InputError: there is no token before a text.
    """

    def __init__(self, memory: Memory, marks: Marks, *, longest: int | None = None) -> None:
        check_beginning(marks)
        self._memory, self._marks, self._longest = memory, marks, longest
        self._steps = 0
        self._next = 0  # number of the next context
        self._contexts: dict[int, _Context] = {}
        self._numbers: dict[tuple[int, int], int] = {}  # of each context, by the one before and the last token
        self._logits = Store()  # (V,) of each context that has been read, and the logarithm of their sum

    @property
    def steps(self) -> int:
        """Tokens that the network was run at so far, the one before the texts and padding included."""
        return self._steps

    def begin(self) -> int:
        """Return the context of the empty text."""
        return self._number(-1, self._marks.before[0])

    def extend(self, contexts: IntArray, tokens: IntArray) -> IntArray:
        """Continue contexts by one token each, (R,); contexts may repeat.

        Raises:
            InputError: a text becomes longer than the network's positions.
        """
        pairs = zip(contexts.tolist(), tokens.tolist(), strict=True)
        return np.array([self._number(context, token) for context, token in pairs], dtype=np.int64)

    def _number(self, before: int, token: int) -> int:
        number = self._numbers.get((before, token))
        if number is None:
            parent = self._contexts[before] if before >= 0 else None
            length = 1 if parent is None else parent.length + 1
            check_length(length - 1, self._longest, "a text")
            number, self._next = self._next, self._next + 1
            self._contexts[number] = _Context(parent, token, length)
            self._numbers[before, token] = number
        return number

    def log_prob(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """Return (R,) log probability of each token after its context, nats.

        Raises:
            InputError: the network's logits are not finite.
        """
        if not len(contexts):
            return np.zeros(0)
        with torch.inference_mode():
            rows, logits, total = self._answers(contexts)
            chosen = logits[rows, torch.from_numpy(tokens).to(logits.device)].double() - total[rows]
            return _finite(chosen)

    def log_any(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """Return (R,) log probability that one of some tokens, (K,), follows each context, nats.

        Raises:
            InputError: the network's logits are not finite.
        """
        if not len(contexts):
            return np.zeros(0)
        with torch.inference_mode():
            rows, logits, total = self._answers(contexts)
            columns = torch.from_numpy(tokens).to(logits.device)
            most = max(1, TOGETHER // len(tokens))
            parts = [rows[low : low + most] for low in range(0, len(rows), most)]
            sums = [torch.logsumexp(logits[some].index_select(1, columns).double(), dim=1) for some in parts]
            return _finite(torch.cat(sums) - total[rows])

    def _answers(self, contexts: IntArray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the rows (R,) of some contexts among the logits (n, V) and among the logarithms of their sums (n,)."""
        requested = [self._contexts[number] for number in contexts.tolist()]
        self._read(requested)
        logits, total = self._logits
        return torch.tensor([context.row for context in requested], device=logits.device), logits, total

    def log_end(self, contexts: IntArray) -> FloatArray:
        """Return (R,) log probability that the text ends after each context, nats; 0 without a token for the end."""
        if not self._marks.after:
            return np.zeros(len(contexts))
        return self.log_prob(contexts, np.full(len(contexts), self._marks.after[0], dtype=np.int64))

    def keep(self, contexts: IntArray) -> None:
        """Forget all contexts but these (others raise a KeyError later), and free the memory of the others."""
        self._contexts = {number: self._contexts[number] for number in dict.fromkeys(contexts.tolist())}
        self._numbers = {key: number for key, number in self._numbers.items() if number in self._contexts}
        answers = [context for context in self._contexts.values() if context.held is not None]
        needed = [context for context in _with_unread(self._contexts.values()) if context.held is not None]
        with torch.inference_mode():
            (rows,) = self._logits.compact([np.array([context.row for context in answers], dtype=np.int64)])
            held = self._memory.compact([_held(context) for context in needed])
        for context, row in zip(answers, rows.tolist(), strict=True):
            context.row = row
        for context, some in zip(needed, held, strict=True):
            context.held = some

    def _read(self, contexts: list[_Context]) -> None:
        """Run the network at these contexts and their unread prefixes, the shortest first."""
        unread = [context for context in _with_unread(contexts) if context.held is None]
        while unread:
            ready = [context for context in unread if context.parent is None or context.parent.held is not None]
            unread = [context for context in unread if context.parent is not None and context.parent.held is None]
            for group in ([c for c in ready if c.parent is None], [c for c in ready if c.parent is not None]):
                cost = self._memory.cost(np.array([context.length - 1 for context in group], dtype=np.int64))
                for some in by_length(cost, self._memory.budget):
                    self._run([group[i] for i in some])

    def _run(self, contexts: list[_Context]) -> None:
        before = [np.zeros(0, dtype=np.int64) if c.parent is None else _held(c.parent) for c in contexts]
        logits, held, steps = self._memory.read(before, np.array([context.token for context in contexts]))
        rows = self._logits.append([logits, torch.logsumexp(logits.double(), dim=1)])
        self._steps += steps
        for context, some, row in zip(contexts, held, rows.tolist(), strict=True):
            context.held, context.row, context.parent = some, row, None


class _Context:
    """A prefix of a text."""

    def __init__(self, parent: _Context | None, token: int, length: int) -> None:
        self.parent = parent  #: None: this is the beginning, or has been read
        self.token = token  #: the last one
        self.length = length  #: tokens, the one before the text included
        self.held: IntArray | None = None  #: of the memory; None: not yet read
        self.row = -1  #: of the logits


def _finite(tensor: torch.Tensor) -> FloatArray:
    values: FloatArray = tensor.cpu().numpy()
    require_finite(values)
    return values


def _held(context: _Context) -> IntArray:
    assert context.held is not None
    return context.held


def _with_unread(contexts: Iterable[_Context]) -> list[_Context]:
    """Return the contexts and their prefixes, back to the first that has been read."""
    result: dict[_Context, None] = {}
    for context in contexts:
        at: _Context | None = context
        while at is not None and at not in result:
            result[at] = None
            at = at.parent
    return [*result]


class Memory(Protocol):
    """The states that a network keeps of texts."""

    def cost(self, lengths: IntArray) -> IntArray:
        """Return the cost of one more token of texts of these lengths, (R,), in the unit of ``budget``."""

    @property
    def budget(self) -> int:
        """Maximum cost of a call: rows times the largest cost."""

    def read(self, held: Sequence[IntArray], tokens: IntArray) -> tuple[Tensor, list[IntArray], int]:
        """Read one more token of R texts.

        Args:
            held: memory of each; empty arrays before the first token, of all texts or of none.
            tokens: (R,).

        Returns:
            Logits (R, V), the new memory, and the number of tokens that the network was run at, padding included.
        """

    def compact(self, held: Sequence[IntArray]) -> list[IntArray]:
        """Forget all but ``held``, and return its new numbers."""


class Store:
    """Tensors that grow by rows and lose rows that nothing needs any more."""

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def __iter__(self) -> Any:
        return iter(self._tensors)

    def append(self, rows: Sequence[Tensor]) -> IntArray:
        """Append rows, each tensor (R, ...), and return their numbers, (R,)."""
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
        """Keep only the rows that are ``held``, and return their new numbers."""
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


class _StoreMemory:
    """Memory that is rows of a `Store`."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        self._store = Store()
        self._size = 1  #: numbers that are kept of a token, or of a text

    @property
    def budget(self) -> int:
        """Maximum of gathered numbers."""
        return NUMBERS

    def compact(self, held: Sequence[IntArray]) -> list[IntArray]:
        """See `Memory.compact`."""
        return self._store.compact(held)


class KeyValues(_StoreMemory):
    """Memory of a transformer: keys and values of each token, once, however many texts continue it.

    The rows of one call may be of different lengths: shorter ones are padded on the left, with a mask and with
    position numbers. This works if positions enter by number or by distance; see `reads_padded`.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        self._takes_positions = "position_ids" in inspect.signature(model.forward).parameters

    def cost(self, lengths: IntArray) -> IntArray:
        """Return the numbers of keys and values gathered."""
        return (lengths + 1) * self._size

    def read(self, held: Sequence[IntArray], tokens: IntArray) -> tuple[Tensor, list[IntArray], int]:
        """See `Memory.read`."""
        device = self._model.device
        inputs: dict[str, Tensor] = {"input_ids": torch.from_numpy(tokens)[:, None].to(device)}
        lengths = np.array([len(some) for some in held])
        width = int(lengths.max())
        cache = DynamicCache()
        if width:
            column = np.arange(width)
            occupied = column >= width - lengths[:, None]
            table = np.zeros(occupied.shape, dtype=np.int64)
            table[occupied] = np.concatenate(held)
            cache = self._gather(torch.from_numpy(table).to(device))
            if not occupied.all():
                mask = np.concatenate([occupied, np.ones((len(occupied), 1), dtype=bool)], axis=1)
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
        """Return a cache of the rows ``table`` (R, L) of the store."""
        rows = [x.index_select(0, table.flatten()).unflatten(0, table.shape).transpose(1, 2) for x in self._store]
        cache = DynamicCache()
        for keys, values in zip(rows[::2], rows[1::2], strict=True):
            layer = DynamicLayer()
            layer.dtype, layer.device = keys.dtype, keys.device
            layer.keys, layer.values, layer.is_initialized = keys, values, True
            cache.layers.append(layer)
        return cache


class FixedStates(_StoreMemory):
    """Memory of a recurrent or convolutional network: `RecurrentStates` of one size however long the text."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        self._dim = 0

    def cost(self, lengths: IntArray) -> IntArray:
        """Return the numbers of states gathered."""
        return np.full(len(lengths), self._size)

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


class WholeTexts:
    """Memory of any other network: the tokens, all read again at every step."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model

    def cost(self, lengths: IntArray) -> IntArray:
        """Return the numbers of tokens read."""
        return lengths + 1

    @property
    def budget(self) -> int:
        """Tokens, such that their logits fit in memory."""
        return max(256, NUMBERS // token_count(self._model) // 8)

    def read(self, held: Sequence[IntArray], tokens: IntArray) -> tuple[Tensor, list[IntArray], int]:
        """See `Memory.read`."""
        texts = [np.append(some, token) for some, token in zip(held, tokens.tolist(), strict=True)]
        table, occupied = pack(texts, int(tokens[0]))
        ids = torch.from_numpy(table).to(self._model.device)
        logits = self._model(input_ids=ids, **without_cache(self._model)).logits
        last = torch.from_numpy(occupied.sum(axis=1) - 1).to(logits.device)
        return logits[torch.arange(len(texts), device=logits.device), last], texts, table.size

    def compact(self, held: Sequence[IntArray]) -> list[IntArray]:
        """Return ``held``: nothing else is stored."""
        return [*held]


@torch.inference_mode()
def memory_of(model: PreTrainedModel) -> type[KeyValues] | type[FixedStates] | type[WholeTexts]:
    """Return the kind of memory of a network, found by running it at a few tokens."""
    cache = cache_of_one_token(model)
    if isinstance(cache, RecurrentStates):
        return FixedStates
    layers = cache.layers if isinstance(cache, DynamicCache) else []
    plain = all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) and layer.is_initialized for layer in layers)
    return KeyValues if layers and plain and reads_padded(model) else WholeTexts


@torch.inference_mode()
def reads_padded(model: PreTrainedModel) -> bool:
    """Return True if a transformer reads texts of different lengths together as it reads each alone."""
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
    together, _, _ = memory.read(held, np.array([text[-1] for text in texts]))
    alone, _, _ = WholeTexts(model).read([text[:-1] for text in texts], np.array([text[-1] for text in texts]))
    return bool((together - alone).abs().max() <= 1e-4 * alone.abs().max().clamp(min=1.0))
