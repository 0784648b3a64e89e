"""N-grams that two corpora share, and how alike their frequencies are (figure 4b of Jumelet & Zuidema 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from truesource.evaluation.measures.correlation import spearman
from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.grammar.inference.exact import Variant
from truesource.grammar.support.arrays import IntArray

HIGHEST = 4  #: longest n-grams counted


@dataclass(frozen=True)
class Ngrams:
    """The n-grams of some corpora, each of them a code from 0 to ``types - 1``, the same in all corpora."""

    n: int
    codes: tuple[IntArray, ...]  #: for each corpus (P,), the code of every position where one starts
    sentence: tuple[IntArray, ...]  #: for each corpus (P,), the sentence of every position
    types: int

    def counts(self, corpus: int, rows: IntArray) -> IntArray:
        """Occurrences of every n-gram in the sentences ``rows`` of a corpus, (types,)."""
        sentence = self.sentence[corpus]
        chosen = np.zeros(1 + max(int(sentence.max(initial=0)), int(rows.max(initial=0))), dtype=np.bool_)
        chosen[rows] = True
        return np.bincount(self.codes[corpus][chosen[sentence]], minlength=self.types)


@dataclass(frozen=True)
class Agreement:
    """N-grams of one sample against those of the reference; shares are in [0, 1]."""

    spearman: float  #: rank correlation of the counts, in [-1, 1]
    shared_types: float  #: share of the sample's types that the reference has
    shared_tokens: float  #: share of the sample's n-grams whose type the reference has
    covered_types: float  #: share of the reference's types that the sample has
    covered_tokens: float  #: share of the reference's n-grams whose type the sample has


def ngrams(corpora: Sequence[Encoded], highest: int = HIGHEST) -> Iterator[Ngrams]:
    """Code the n-grams of all corpora for n = 1 to ``highest``; none crosses the end of a sentence.

    An n-gram is a pair of the code of its first n-1 words and its last word, so that two integers in one sort tell
    all n-grams apart, whatever n. Time O(n T log T), memory O(T) for T tokens.

    Args:
        corpora: encoded together.
        highest: largest n.
    """
    tokens = np.concatenate([corpus.tokens for corpus in corpora])
    left = np.concatenate([_left(corpus) for corpus in corpora])
    corpus_of = np.repeat(np.arange(len(corpora)), [len(corpus.tokens) for corpus in corpora])
    sentence = np.concatenate([corpus.sentence for corpus in corpora])
    words = max(corpus.vocabulary for corpus in corpora)
    position, codes = np.arange(len(tokens)), tokens
    for n in range(1, highest + 1):
        if n > 1:
            kept = left[position] >= n
            position = position[kept]
            _, codes = np.unique(codes[kept] * words + tokens[position + n - 1], return_inverse=True)
        ends = np.searchsorted(corpus_of[position], np.arange(len(corpora) + 1))
        parts = [slice(a, b) for a, b in pairwise(ends.tolist())]
        yield Ngrams(
            n,
            tuple(codes[part] for part in parts),
            tuple(sentence[position[part]] for part in parts),
            1 + int(codes.max(initial=-1)),
        )


def agreement(counts: IntArray, reference: IntArray, variant: Variant = "default") -> Agreement | None:
    """Compare two samples of equally many sentences; None where either has no n-gram.

    Over the union of types, what stands once in one sample and nowhere in the other pulls rho down, the more so the
    larger n: only the rho of two halves of the reference, of the same size, says what could be reached.

    Args:
        counts: (types,) of the sample.
        reference: (types,) of the reference.
        variant: ``default`` ranks all types of either side; ``paper`` only those of the reference, as the released
            code does, so that nothing that the sample makes up counts against it.
    """
    if not counts.any() or not reference.any():
        return None
    ranked = reference > 0 if variant == "paper" else (counts + reference) > 0
    ours, theirs = counts > 0, reference > 0
    both = ours & theirs
    return Agreement(
        spearman(counts[ranked].astype(np.float64), reference[ranked].astype(np.float64)),
        float(np.count_nonzero(both) / np.count_nonzero(ours)),
        float(counts[both].sum() / counts.sum()),
        float(np.count_nonzero(both) / np.count_nonzero(theirs)),
        float(reference[both].sum() / reference.sum()),
    )


def _left(corpus: Encoded) -> IntArray:
    """Tokens from each position to the end of its sentence, itself included, (T,)."""
    return np.repeat(np.cumsum(corpus.lengths), corpus.lengths) - np.arange(len(corpus.tokens))
