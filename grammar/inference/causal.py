"""Exact inference for any truth, a grammar or a process: the next word, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import DTypeLike

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch, Distributions
from truesource.grammar.support.arrays import FloatArray

if TYPE_CHECKING:
    from truesource.grammar.inference.next_token import NextToken


class ExactCausal(Protocol):
    """Exact inference for any truth; conditioned on ``lengths`` in methods that take it."""

    @property
    def mean_length(self) -> float:
        """Expected number of words of a sentence."""

    @property
    def total_mass(self) -> float:
        """Probability of all sentences together."""

    def causal_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[FloatArray]:
        """Ln P(token | its left context) of each sentence, (n+1,) nats with the end; -inf from an impossible one on."""

    def string_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """Ln P(sentence), (N,) nats."""

    def causal_batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[Batch]:
        """Sentences in batches for `next_token_blocks`; those that are equal share a column."""

    def next_token_blocks(
        self, batch: Batch, lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> Iterator[Distributions]:
        """The next-token distributions of one batch, positions 0 to n."""

    def length_pmf(self, high: int, lengths: LengthRange | None = None) -> FloatArray:
        """P(a sentence has m words), m = 0..``high``, (high+1,)."""

    def range_mass(self, lengths: LengthRange) -> float:
        """P(the number of words is in a range)."""

    def prefix_log_prob(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> float:
        """Ln P(a sentence starts so), nats."""

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """The distribution of what follows a prefix."""
