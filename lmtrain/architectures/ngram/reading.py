"""Reading text with an n-gram model: token numbers in, log probabilities out; for one text, or for many at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from truesource.generator.piece_model import PathSums
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.lmtrain.architectures.ngram._kernels import reading as kernels
from truesource.lmtrain.architectures.ngram._kernels.counts import start_range
from truesource.lmtrain.architectures.ngram._kernels.trie import TrieArrays
from truesource.lmtrain.architectures.ngram.trie import NgramEstimate, Stream


class ReaderState(NamedTuple):
    """The memory of R texts of one length."""

    node: IntArray  #: (R,) the longest n-gram of the trie, shorter than the order, that each ends in
    length: IntArray  #: (R,) tokens of it
    position: int  #: tokens read, ``<bos>`` not counted

    def take(self, rows: IntArray) -> ReaderState:
        """Select texts, in any order, any number of times."""
        return ReaderState(self.node[rows], self.length[rows], self.position)


@dataclass(frozen=True)
class Reader:
    """An estimate, ready to be read from. Log probabilities are nats, -inf for probability zero."""

    estimate: NgramEstimate
    bos: int
    eos: int

    @property
    def n_tokens(self) -> int:
        """K, size of the vocabulary with its special tokens."""
        return self.estimate.trie.n_tokens

    @property
    def strict(self) -> bool:
        """True: nothing is expected after a context that was never seen in full."""
        return self.estimate.smoothing == "mle"

    @cached_property
    def _arrays(self) -> TrieArrays:
        trie = self.estimate.trie
        return TrieArrays(trie.start, trie.word, trie.suffix, self.estimate.log_prob, self.estimate.backoff)

    def score(self, stream: Stream) -> FloatArray:
        """Return the log probability of every token but ``<bos>``, sentence by sentence, (T - S,)."""
        order = self.estimate.trie.order
        values: FloatArray = kernels.score(self._arrays, order, self.strict, stream.tokens, stream.ends)
        return values

    def contexts(self, stream: Stream) -> Int32Array:
        """Return the context of every token but ``<bos>``, as a number of the trie, (T - S,)."""
        order = self.estimate.trie.order
        result: Int32Array = kernels.contexts(self._arrays, order, stream.tokens, stream.ends)
        return result

    def look_up(self, nodes: IntArray, tokens: NDArray[np.integer]) -> tuple[FloatArray, IntArray]:
        """Return the log probability of one token after each of R contexts, and the contexts then; both (R,)."""
        values, after = kernels.look_up(self._arrays, nodes, tokens.astype(np.int32))
        if self.strict:
            values[~self.seen[nodes]] = -np.inf
        return values, after

    def log_mass(self, tokens: NDArray[np.integer]) -> FloatArray:
        """Log probability that one of some tokens follows, by context, (C,); computed once for each set."""
        key = tokens.astype(np.int64).tobytes()
        if key not in self._masses:
            members = np.zeros(self.n_tokens, dtype=np.bool_)
            members[tokens] = True
            values = log_mass(self.estimate, members)
            if self.strict:
                values[~self.seen] = -np.inf
            self._masses[key] = values
        return self._masses[key]

    @cached_property
    def _masses(self) -> dict[bytes, FloatArray]:
        return {}

    def sum_paths(self, source: IntArray, first: IntArray, tokens: NDArray[np.integer], most: int) -> PathSums:
        """Sum over the paths of a lattice, see `truesource.generator.piece_model.LatticeScorer.sum_paths`."""
        begin = int(self.begin(1).node[0])
        allowed = self.seen if self.strict else np.ones(len(self.estimate.backoff), dtype=np.bool_)
        return PathSums(
            *kernels.sum_paths(
                self._arrays, allowed, begin, source.astype(np.int64), first, tokens.astype(np.int32), most
            )
        )

    @cached_property
    def seen(self) -> BoolArray:
        """(C,) contexts that cannot be longer: of N - 1 tokens, or from the beginning of a sentence."""
        trie = self.estimate.trie
        seen = np.zeros(int(trie.level[-1]), dtype=bool)
        seen[slice(*trie.bounds(trie.order - 1))] = True
        if trie.order > 1:
            for begin, end in start_range(trie.start, trie.level, 1 + self.bos)[: trie.order]:
                seen[begin:end] = True
        return seen

    def begin(self, n: int) -> ReaderState:
        """Return the state of ``n`` texts after ``<bos>``."""
        if self.estimate.trie.order == 1:
            return ReaderState(np.zeros(n, np.int64), np.zeros(n, np.int64), 0)
        return ReaderState(np.full(n, 1 + self.bos, np.int64), np.ones(n, np.int64), 0)

    def advance(self, state: ReaderState, tokens: NDArray[np.integer]) -> ReaderState:
        """Continue each text by one of ``tokens`` (R,)."""
        node, length = state.node.copy(), state.length.copy()
        kernels.advance(self._arrays, node, length, tokens.astype(np.int32))
        return ReaderState(node, length, state.position + 1)

    def expect(self, state: ReaderState, columns: IntArray) -> FloatArray:
        """Return the log probability of every next token.

        Args:
            state: of R texts.
            columns: (C,) token of each column of the result.

        Returns:
            (R, C) nats.
        """
        result = np.full((len(state.node), len(columns)), -np.inf)
        column = np.full(self.n_tokens, -1, dtype=np.int64)
        column[columns] = np.arange(len(columns))
        order = self.estimate.trie.order
        kernels.expect(self._arrays, order, self.strict, state.node, state.length, state.position, column, result)
        return result


def log_mass(estimate: NgramEstimate, members: BoolArray) -> FloatArray:
    """Return the log probability that the next token is one of a set.

    With b(h) and h' as in `_kernels.counts.estimate`, p(w | h) is b(h) p(w | h') where hw is not in
    the trie, so the mass of the set after h is the sum of its p(w | h) over the hw that are, plus b(h) times what of
    the mass after h' belongs to other tokens. One pass over the n-grams, shorter contexts first.

    Args:
        estimate: of the n-grams.
        members: (K,) which tokens are in the set.

    Returns:
        (C,) nats, by context; -inf where none of them can follow.
    """
    trie = estimate.trie
    n_contexts = len(estimate.backoff)
    context = np.repeat(np.arange(n_contexts), np.diff(trie.start))  # of every n-gram but the empty one
    chosen = 1 + np.flatnonzero(members[trie.word[1:]])
    context = context[chosen - 1]
    p = np.exp(estimate.log_prob)
    mass = np.bincount(context, p[chosen], minlength=n_contexts)
    shorter = np.bincount(context, p[np.maximum(trie.suffix[chosen], 0)], minlength=n_contexts)
    for length in range(1, trie.order):
        some = slice(*trie.bounds(length))
        others = np.maximum(mass[trie.suffix[some]] - shorter[some], 0.0)
        mass[some] += np.exp(estimate.backoff[some]) * others
    with np.errstate(divide="ignore"):
        result: FloatArray = np.log(mass)
    return result


class NgramScorer:
    """An `IncrementalScorer` whose memories are contexts of the trie, so equal memories are one number.

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
        """Return the context of the empty text."""
        return int(self._reader.begin(1).node[0])

    def extend(self, contexts: IntArray, tokens: IntArray) -> IntArray:
        """Continue contexts by one token each, (R,); contexts may repeat."""
        self._steps += len(contexts)
        return self._reader.look_up(contexts, tokens)[1]

    def log_prob(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """Return (R,) log probability of each token after its context, nats."""
        return self._reader.look_up(contexts, tokens)[0]

    def log_any(self, contexts: IntArray, tokens: IntArray) -> FloatArray:
        """Return (R,) log probability that one of some tokens, (K,), follows each context, nats."""
        return self._reader.log_mass(tokens)[contexts]

    def log_end(self, contexts: IntArray) -> FloatArray:
        """Return (R,) log probability that the text ends after each context, nats."""
        return self.log_prob(contexts, np.full(len(contexts), self._reader.eos, dtype=np.int64))

    def sum_paths(self, source: IntArray, first: IntArray, tokens: IntArray, most: int) -> PathSums:
        """Return the sum over all paths of a lattice; see `truesource.generator.piece_model.LatticeScorer`."""
        result = self._reader.sum_paths(source, first, tokens, most)
        self._steps += result.steps
        return result

    def keep(self, contexts: IntArray) -> None:
        """Do nothing, since nothing is remembered."""
