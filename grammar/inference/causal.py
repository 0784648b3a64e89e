"""Exact inference for any ground truth, a grammar or a process: next-word distributions and quantities from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import DTypeLike

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch, Distributions
from truesource.grammar.inference.other_words import OtherWords
from truesource.grammar.sentences import takes_sentence, takes_sentences
from truesource.grammar.support.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from truesource.grammar.inference.next_token import NextToken


class ExactCausal(Protocol):
    """Exact inference for any ground truth, conditioned on ``lengths`` in methods that take it.

    A subclass has the probabilities of sentences and prefixes as sums over their words.
    """

    @property
    def mean_length(self) -> float:
        """Expected number of words of a sentence."""

    @property
    def total_mass(self) -> float:
        """Total probability of all sentences."""

    def causal_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[FloatArray]:
        """Return ln P(token | its left context) of each sentence, (n+1,) nats with the end; -inf once impossible."""

    @takes_sentences
    def string_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """Return ln P(sentence), (N,) nats; -inf if it is not in the language."""
        return np.array([float(row.sum()) for row in self.causal_log_probs(sentences, lengths, dtype=dtype)])

    def causal_batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[Batch]:
        """Return sentences in batches for `next_token_blocks`; equal sentences share a column."""

    def next_token_blocks(
        self, batch: Batch, lengths: LengthRange | None = None, *, first: int = 0, dtype: DTypeLike = np.float64
    ) -> Iterator[Distributions]:
        """Return the next-token distributions of one batch, positions ``first`` to n."""

    def blocks_beside(
        self,
        batch: Batch,
        others: OtherWords,
        lengths: LengthRange | None = None,
        *,
        first: int = 0,
        dtype: DTypeLike = np.float64,
    ) -> tuple[Iterator[Distributions], IntArray, FloatArray]:
        """Return `next_token_blocks`, and the distributions after other words that share their computation.

        Args:
            batch: sentences.
            others: words that continue beginnings of these in another way.
            lengths: condition on this range.
            first: first position of the blocks.
            dtype: floating-point type of the charts.

        Returns:
            The blocks; the D other words that were computed, here none; and the distributions after them, (D, V+1),
            the end last, with zeros after impossible words. They are what `next_token_blocks` would give.
        """
        blocks = self.next_token_blocks(batch, lengths, first=first, dtype=dtype)
        return blocks, np.zeros(0, np.int64), np.zeros((0, 0))

    def length_pmf(self, high: int, lengths: LengthRange | None = None) -> FloatArray:
        """Return P(a sentence has m words), m = 0..``high``, (high+1,)."""

    def range_mass(self, lengths: LengthRange) -> float:
        """Return P(the number of words is in a range)."""

    @takes_sentence
    def prefix_log_prob(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> float:
        """Return ln P(a sentence starts with the prefix), nats; -inf if none does."""
        return float(self.causal_log_probs([prefix], lengths)[0][:-1].sum())

    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Return the distribution of the next word or the end after a prefix."""
