"""Reading many texts at once with a causal network, piece by piece."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch

from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.data import by_length
from truesource.lmtrain.pieces.batch_scorer import check_beginning, check_length
from truesource.lmtrain.pieces.kv_cache import Memory, Store
from truesource.lmtrain.pieces.word_aligner import Marks

TOGETHER = 2**22  #: logits that `NetworkScorer.log_any` adds up at once


class _Context:
    """A text so far."""

    def __init__(self, parent: _Context | None, token: int, length: int) -> None:
        self.parent = parent  #: None: this is the beginning, or has been read
        self.token = token  #: the last one
        self.length = length  #: tokens, the one before the text included
        self.held: IntArray | None = None  #: of the memory; None: not yet read
        self.row = -1  #: of the logits


class NetworkScorer:
    """A `truesource.generator.language_model.IncrementalScorer` of a causal network.

    The network reads a token when something is asked that follows it, so the last piece of a text that is given up
    costs nothing, and equal texts are one context, read once. All texts that a question concerns are read in as
    few calls as memory allows, whatever their lengths. Values are softmaxes in float64 over all the network emits:
    what it gives to special tokens is lost.

    Args:
        memory: what the network keeps of texts; it is this scorer's alone.
        marks: the tokens around a text.
        longest: tokens that the network reads, the one before the text included; None: any number.

    Raises:
        InputError: no token stands before a text.
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
        """The context of the empty text."""
        return self._number(-1, self._marks.before[0])

    def extend(self, contexts: IntArray, tokens: IntArray) -> IntArray:
        """(R,) contexts each continued by one token; contexts may repeat.

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
        """(R,) log probability of each token after its context, nats.

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
        """(R,) log probability that one of some tokens, (K,), follows each context, nats.

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
        """Rows (R,) of some contexts among the logits (n, V) and among the logarithms of their sums (n,)."""
        asked = [self._contexts[number] for number in contexts.tolist()]
        self._read(asked)
        logits, total = self._logits
        return torch.tensor([context.row for context in asked], device=logits.device), logits, total

    def log_end(self, contexts: IntArray) -> FloatArray:
        """(R,) log probability that the text ends after each context, nats; 0 without a token for the end."""
        if not self._marks.after:
            return np.zeros(len(contexts))
        return self.log_prob(contexts, np.full(len(contexts), self._marks.after[0], dtype=np.int64))

    def keep(self, contexts: IntArray) -> None:
        """Forget all contexts but these (asking of others is a KeyError), and free what only the others needed."""
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
        """Run the network at these contexts and those before them that it has not read, the shortest first."""
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


def _finite(found: torch.Tensor) -> FloatArray:
    values: FloatArray = found.cpu().numpy()
    if not np.isfinite(values).all():
        raise InputError("the model's logits are not finite; its weights are damaged or its training diverged")
    return values


def _held(context: _Context) -> IntArray:
    assert context.held is not None
    return context.held


def _with_unread(contexts: Iterable[_Context]) -> list[_Context]:
    """Some contexts and those before them, back to the first that has been read."""
    found: dict[_Context, None] = {}
    for context in contexts:
        at: _Context | None = context
        while at is not None and at not in found:
            found[at] = None
            at = at.parent
    return [*found]
