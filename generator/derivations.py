"""Derivations of a grammar as rows of rule numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray


@dataclass(frozen=True)
class Derivations:
    """Derivations as rows of rule numbers in preorder; rules are numbered binary, unary, lexical."""

    rules: Int32Array  #: (N,) all rows, one after the other
    ends: IntArray  #: (n+1,) row i is ends[i]:ends[i+1]
    n_tokens: Int32Array  #: (n,)
    log_prob: FloatArray  #: (n,) nats, of the derivation under the unconditioned grammar

    def __len__(self) -> int:
        return len(self.n_tokens)

    def take(self, kept: BoolArray) -> Derivations:
        """The derivations where ``kept`` (n,) is true, in their order."""
        sizes = np.diff(self.ends)
        ends = np.concatenate([[0], np.cumsum(sizes[kept])])
        return Derivations(self.rules[np.repeat(kept, sizes)], ends, self.n_tokens[kept], self.log_prob[kept])

    @classmethod
    def joined(cls, parts: Sequence[Derivations]) -> Derivations:
        """All of some batches, one batch after the other."""
        if len(parts) == 1:
            return parts[0]
        sizes = np.concatenate([np.diff(part.ends) for part in parts])
        ends = np.concatenate([[0], np.cumsum(sizes)])
        columns = ([getattr(part, name) for part in parts] for name in ("rules", "n_tokens", "log_prob"))
        rules, n_tokens, log_prob = (np.concatenate(column) for column in columns)
        return cls(rules, ends, n_tokens, log_prob)
