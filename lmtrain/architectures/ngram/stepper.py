"""Drawing text from an n-gram model, token by token."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from truesource.grammar.support.arrays import IntArray
from truesource.lmtrain.architectures.ngram.reading import Reader


class NgramStepper:
    """A `lmtrain.decoding.sampling.Stepper` that remembers the last N-1 tokens of a row as a context of the trie.

    Log probabilities are float64 on the CPU, in the order of the token numbers; ``<pad>``, ``<bos>`` and ``<mask>``
    never come (-inf).
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._state = reader.begin(0)

    def start(self, n: int) -> Tensor:
        """Begin ``n`` empty rows; (n, K) nats."""
        self._state = self._reader.begin(n)
        return self._expect()

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Extend rows ``parents`` (R,), each by one of ``tokens`` (R,); (R, K) nats."""
        some = self._state.take(parents.cpu().numpy())
        self._state = self._reader.advance(some, tokens.cpu().numpy())
        return self._expect()

    def _expect(self) -> Tensor:
        columns: IntArray = np.arange(self._reader.n_tokens)
        return torch.from_numpy(self._reader.expect(self._state, columns))
