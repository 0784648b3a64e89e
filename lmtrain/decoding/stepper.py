"""Text that grows one token at a time, whatever the model remembers of it."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Stepper(Protocol):
    """Next-token log probabilities of rows of text, all of one length, that are extended token by token."""

    def start(self, n: int) -> Tensor:
        """Begin ``n`` empty rows, each after ``<bos>``; log probabilities (n, K) of their first token, nats."""

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Go on with some rows, each one token longer.

        Args:
            parents: (R,) int64, which of the present rows each new row continues; rows may be dropped or repeated.
            tokens: (R,) int64, the token appended to each.

        Returns:
            Log probabilities (R, K) of the next token of the new rows, nats.
        """
