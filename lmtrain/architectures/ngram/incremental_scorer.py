"""Reading many texts at once with an n-gram model, token by token."""

from __future__ import annotations

import numpy as np

from truesource.generator.language_model import PathSums
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.lmtrain.architectures.ngram.reading import Reader


class NgramScorer:
    """An `IncrementalScorer` whose contexts are those of the trie, so equal memories are one number.

    Log probabilities are -inf for what ``mle`` never saw.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._steps = 0

    @property
    def steps(self) -> int:
        """Look-ups of a context and the token that continues it."""
        return self._steps

    def begin(self) -> int:
        """The context of the empty text."""
        return int(self._reader.begin(1).node[0])

    def extend(self, contexts: IntArray, tokens: IntArray) -> IntArray:
        """(R,) contexts each continued by one token; contexts may repeat."""
        self._steps += len(contexts)
        return self._reader.look_up(contexts, tokens)[1]

    def log_prob(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """(R,) log probability of each token after its context, nats."""
        return self._reader.look_up(contexts, tokens)[0]

    def log_any(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """(R,) log probability that one of some tokens, (K,), follows each context, nats."""
        return self._reader.log_mass(tokens)[contexts]

    def log_end(self, contexts: IntArray) -> FloatArray:
        """(R,) log probability that the text ends after each context, nats."""
        return self.log_prob(contexts, np.full(len(contexts), self._reader.eos, dtype=np.int64))

    def sum_paths(self, source: IntArray, first: IntArray, tokens: IntArray, most: int) -> PathSums:
        """Sum over all paths of a lattice; see `truesource.generator.language_model.LatticeScorer`."""
        found = self._reader.sum_paths(source, first, tokens, most)
        self._steps += found.steps
        return found

    def keep(self, contexts: IntArray) -> None:
        """Nothing is remembered, so nothing is forgotten."""
