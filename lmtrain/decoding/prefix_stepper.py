"""Next-token probabilities from a function of whole prefixes, which remembers nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from truesource.grammar.support.arrays import FloatArray
from truesource.lmtrain.decoding.decode import Alphabet


class PrefixStepper:
    """A `truesource.lmtrain.decoding.stepper.Stepper` that asks for every prefix anew, each different one once."""

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
        """Go on with some rows, each one token longer; see `Stepper.extend`."""
        self._rows = torch.cat([self._rows[parents], tokens[:, None]], dim=1)
        return self._next()

    def _next(self) -> Tensor:
        different, place = np.unique(self._rows.numpy(), axis=0, return_inverse=True)
        found = self._following([self._alphabet.spell(row) for row in different.tolist()])
        return torch.from_numpy(np.asarray(found, dtype=np.float64)[place.reshape(-1)])
