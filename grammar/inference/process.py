"""The exact quantities of a process: many strings at once, one step a word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import DTypeLike

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch, encoded_batches
from truesource.grammar.inference.distributions import Distributions
from truesource.grammar.inference.exact import NextToken
from truesource.grammar.languages import no_length
from truesource.grammar.process import Process
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter

AT_ONCE = 4096  #: strings that are scored in one step


class ProcessInference:
    """What a process and a grammar have in common, see `truesource.grammar.process.ExactCausal`.

    Probabilities of words are those of the process; a length condition takes another process, `Process.given`, which
    is kept.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self._given: dict[LengthRange, Process] = {}
        self._masses: dict[LengthRange, float] = {}

    @property
    def total_mass(self) -> float:
        """1: all strings of a process end."""
        return 1.0

    @property
    def mean_length(self) -> float:
        """Expected number of words."""
        return float(self.process.expected_words().sum())

    def given(self, lengths: LengthRange | None) -> Process:
        """The process under a length condition.

        Raises:
            InputError: no string has such a length.
        """
        if lengths is None:
            return self.process
        if lengths not in self._given:
            self._given[lengths] = self.process.given(lengths)
        return self._given[lengths]

    def length_pmf(self, high: int, lengths: LengthRange | None = None) -> FloatArray:
        """P(a string has m words), m = 0..``high``, (high+1,)."""
        return self.given(lengths).length_pmf(high)

    def range_mass(self, lengths: LengthRange) -> float:
        """P(the number of words is in a range).

        Raises:
            InputError: it is zero.
        """
        if lengths not in self._masses:
            mass = float(self.process.length_pmf(lengths.high)[lengths.low :].sum())
            if mass <= 0.0:
                raise no_length(self.process.name, lengths)
            self._masses[lengths] = mass
        return self._masses[lengths]

    def causal_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[FloatArray]:
        """Ln P(word | words before it) of each string, (n+1,) nats, the end last; -inf from an impossible one on."""
        process = self.given(lengths)
        encoded = [process.encode(sentence) for sentence in sentences]
        order = sorted(range(len(encoded)), key=lambda i: -len(encoded[i]))
        rows: list[FloatArray] = [np.empty(0)] * len(encoded)
        with meter("exact next-word probabilities of strings", len(encoded)) as progress:
            for at in range(0, len(order), AT_ONCE):
                some = order[at : at + AT_ONCE]
                sizes = np.array([len(encoded[i]) for i in some], dtype=np.int64)
                words = np.full((len(some), int(sizes[0]) + 1), len(process.terminals), dtype=np.int64)
                for row, i in enumerate(some):
                    words[row, : sizes[row]] = encoded[i]
                table = _steps(process, words, sizes)
                for row, i in enumerate(some):
                    rows[i] = table[row, : sizes[row] + 1].copy()
                progress.advance(len(some))
        return rows

    def string_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """Ln P(string), (N,) nats; -inf where it is not in the language."""
        return np.array([float(row.sum()) for row in self.causal_log_probs(sentences, lengths, dtype=dtype)])

    def prefix_log_prob(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> float:
        """Ln P(a string starts with ``prefix``), nats; -inf when none does."""
        return float(self.causal_log_probs([prefix], lengths)[0][:-1].sum())

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Distribution of what follows ``prefix``.

        Raises:
            InputError: no string (of that length range) starts so.
        """
        process = self.given(lengths)
        state = process.begin(1)
        for at, word in enumerate(process.encode(prefix)):
            number = np.array([word], dtype=np.int64)
            if not process.probability(state, number)[0] > 0.0:
                raise InputError(
                    f"no string starts with {' '.join(prefix[: at + 1])!r}: {prefix[at]!r} cannot stand there"
                )
            state = process.read(state, number)
        law = process.law(state)[0]
        return NextToken(process.terminals, law[:-1], float(law[-1]), np.empty(0))

    def causal_batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[Batch]:
        """Strings in batches for `next_token_blocks`; those that are equal share a column.

        Raises:
            InputError: a string has no words.
        """
        width = 16 * (len(self.process.terminals) + 1)
        return encoded_batches(self.process.encode, sentences, lambda n: width)

    def next_token_blocks(
        self, batch: Batch, lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> Iterator[Distributions]:
        """The next-word distributions of one batch, positions 0 to n."""
        process = self.given(lengths)
        n, width = batch.words.shape
        end = len(process.terminals)
        words = np.concatenate([batch.words.T, np.full((width, 1), end)], axis=1).astype(np.int64)
        logs = _steps(process, words, np.full(width, n))
        whole = np.isfinite(logs).all(axis=1)
        state, alive = process.begin(width), np.arange(width)
        for j in range(n + 1):
            table = np.zeros((width, end + 1))
            table[alive] = process.law(state)
            possible = np.zeros(width, dtype=np.bool_)
            possible[alive] = True
            yield Distributions(
                j, batch.members, words[:, j], table, possible, np.asarray(whole), logs[:, j], np.empty((width, 0))
            )
            if j < n:
                goes_on = np.isfinite(logs[alive, j])
                state, alive = process.take(state, goes_on), alive[goes_on]
                state = process.read(state, words[alive, j])


def _steps(process: Process, words: IntArray, sizes: IntArray) -> FloatArray:
    """Ln P of every word and of the end, (W, n+1) nats, -inf from an impossible one on and beyond the end.

    Args:
        process: that scores.
        words: (W, n+1) numbers; V, the end, from the end of each string on; -1 for no word of the language.
        sizes: (W,) words of each.
    """
    table = np.full(words.shape, -np.inf)
    state, alive = process.begin(len(words)), np.arange(len(words))
    for j in range(words.shape[1]):
        probability = process.probability(state, words[alive, j])
        with np.errstate(divide="ignore"):
            table[alive, j] = np.log(probability)
        goes_on = (probability > 0.0) & (sizes[alive] > j)
        if not goes_on.any():
            break
        if not goes_on.all():
            state, alive = process.take(state, goes_on), alive[goes_on]
        state = process.read(state, words[alive, j])
    return table
