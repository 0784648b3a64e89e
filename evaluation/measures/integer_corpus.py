"""Sentences as integers: every word has one code, the same in all corpora compared; their lengths and types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError


@dataclass(frozen=True)
class Encoded:
    """A corpus in codes from 0 to ``vocabulary - 1``."""

    tokens: IntArray  #: (T,) all sentences, one after the other
    lengths: IntArray  #: (N,) tokens of each sentence, 1 or more
    vocabulary: int  #: V, words of all corpora that were encoded together

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def sentence(self) -> IntArray:
        """Sentence of each token, (T,)."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def among(self, rows: IntArray) -> BoolArray:
        """Return the mask of the tokens in the sentences ``rows``, (T,)."""
        chosen = np.zeros(len(self.lengths), dtype=np.bool_)
        chosen[rows] = True
        return chosen[self.sentence]

    def counts(self, rows: IntArray | None = None) -> IntArray:
        """Return occurrences of every word in the sentences ``rows``, in all of them by default, (V,)."""
        tokens = self.tokens if rows is None else self.tokens[self.among(rows)]
        return np.bincount(tokens, minlength=self.vocabulary)


def encode(corpora: Sequence[Sequence[Sequence[str]]]) -> list[Encoded]:
    """Code corpora together.

    Raises:
        InputError: a corpus has no sentences, or a sentence has no words.
    """
    return encode_with_words(corpora)[0]


def encode_with_words(
    corpora: Sequence[Sequence[Sequence[str]]], words: Sequence[str] = ()
) -> tuple[list[Encoded], list[str]]:
    """Code corpora together, and return the word of every code too.

    Args:
        corpora: the words of each sentence of each corpus.
        words: types with the codes 0, 1, ...; others get the next codes, in order of occurrence.

    Raises:
        InputError: a corpus has no sentences, or a sentence has no words.
    """
    codes: dict[str, int] = {word: code for code, word in enumerate(words)}
    coded = []
    for sentences in corpora:
        lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
        if not len(lengths) or not lengths.all():
            what = "a sentence without words" if len(lengths) else "no sentences"
            raise InputError(f"there is a corpus with {what}; only sentences of one word or more can be measured")
        flat = (codes.setdefault(word, len(codes)) for sentence in sentences for word in sentence)
        coded.append((np.fromiter(flat, dtype=np.int64, count=int(lengths.sum())), lengths))
    return [Encoded(tokens, lengths, len(codes)) for tokens, lengths in coded], list(codes)


def permuted(n: int, seed: int, number: int = 0) -> IntArray:
    """Return the numbers 0 to n-1 of sentences in random order ``number``; equal for corpora of one size, (n,)."""
    return np.random.default_rng([seed, number]).permutation(n)


def length_counts(lengths: IntArray, high: int) -> IntArray:
    """Count sentences of 0, 1, ..., ``high`` tokens and, last, of more, (high+2,)."""
    return np.bincount(np.minimum(lengths, high + 1), minlength=high + 2)


def with_rest(pmf: FloatArray) -> FloatArray:
    """Return a length pmf up to a highest length, and the mass beyond it; (high+1,) gives (high+2,)."""
    return np.append(pmf, max(0.0, 1.0 - float(pmf.sum())))


def expected_types(counts: IntArray, tokens: int) -> float:
    """Return the expected number of types in ``tokens`` tokens drawn without replacement.

    ``sum_w 1 - C(N - c_w, n) / C(N, n)`` (rarefaction; Hurlbert 1971).

    Args:
        counts: (V,) occurrences of each word, N in all.
        tokens: n, from 0 to N.
    """
    seen = counts[counts > 0].astype(np.float64)
    total = seen.sum()
    left = total - seen
    can_miss = left >= tokens
    some = left[can_miss]
    missed = gammaln(some + 1) - gammaln(some - tokens + 1) - gammaln(total + 1) + gammaln(total - tokens + 1)
    return float(len(seen) - np.exp(missed).sum())
