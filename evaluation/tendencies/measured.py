"""Measures of one sample that a truth or a reference is compared on, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truesource.evaluation.measures.distances import distances
from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.evaluation.measures.rarefaction import expected_types
from truesource.evaluation.tendencies.rank_frequency import RankFrequency, by_rank_of, rank_frequency
from truesource.evaluation.tendencies.shares import shares
from truesource.evaluation.tendencies.truth import Truth
from truesource.evaluation.tendencies.type_token import Heaps, TypeCounts, fit_heaps, pairs_of, type_counts
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError


@dataclass(frozen=True)
class Sample:
    """Some sentences, counted once."""

    corpus: Encoded
    classes: Mapping[str, IntArray]  #: codes of the words of each class, such as stopwords
    longest: int  #: tables of lengths go up to it
    unknown: int | None = None  #: code of ``<unk>``, which is no word: it has no rank and is no type

    @cached_property
    def counts(self) -> IntArray:
        """Of every word, (V,)."""
        return self.corpus.counts()

    @cached_property
    def known(self) -> IntArray:
        """`counts` without that of ``<unk>``, (V,)."""
        known = self.counts
        if self.unknown is not None:
            known = known.copy()
            known[self.unknown] = 0
        return known

    @cached_property
    def bigrams(self) -> IntArray:
        """Of every pair of known neighbours that occurs."""
        return np.unique(pairs_of(self.corpus, self.unknown), return_counts=True)[1]

    @cached_property
    def types(self) -> TypeCounts:
        """Different known words by length."""
        return type_counts(self.corpus, high=self.longest, without=self.unknown)

    @cached_property
    def bigram_types(self) -> TypeCounts:
        """Different pairs of known neighbours by length."""
        return type_counts(self.corpus, 2, high=self.longest, without=self.unknown)

    @cached_property
    def heaps(self) -> Heaps | None:
        """The law of its types; None where there is none."""
        try:
            return fit_heaps(self.types)
        except InputError:
            return None

    def shares(self, name: str) -> FloatArray:
        """Of one class, (N,)."""
        return shares(self.corpus, self.classes[name])

    def rarefied(self, tokens: int) -> float:
        """Expected different words in so many of its known tokens."""
        return expected_types(self.known, tokens)

    def rarefied_bigrams(self, pairs: int) -> float:
        """Expected different pairs of neighbours in so many of its known pairs."""
        return expected_types(self.bigrams, pairs)


@dataclass(frozen=True)
class Sizes:
    """At what sizes different words are counted, the same for all samples of a table."""

    tokens: int
    pairs: int


def ranks_against(sample: Sample, truth: Truth) -> RankFrequency | None:
    """Rank-frequency by the truth's own ranks; None where there are too few words."""
    by_rank = by_rank_of(sample.counts[: len(truth.words)], truth.known)
    total = int(sample.counts.sum())
    try:
        return rank_frequency(
            by_rank,
            truth.ranked,
            unranked=1.0 - float(by_rank.sum()) / total,
            reference_exponent=truth.zipf_exponent,
        )
    except InputError:
        return None


def against(sample: Sample, truth: Truth, sizes: Sizes) -> dict[str, float]:
    """Every measure whose chance distribution is that of samples of the truth; some are missing for odd samples."""
    counts = sample.counts
    known = np.pad(truth.unigram, (0, len(counts) - len(truth.unigram)))
    words = distances(counts / counts.sum(), known)
    found = {"unigram_tv": float(words["tv"]), "unigram_linf": float(words["linf"])}
    if sample.unknown is not None:
        found["unknown_share"] = float(counts[sample.unknown] / counts.sum())
    ranks = ranks_against(sample, truth)
    if ranks is not None:
        found |= {
            "rank_ks": ranks.to_reference,
            "rank_ks_own_law": ranks.to_own_law,
            "rank_ks_reference_law": ranks.to_reference_law,
            "zipf_exponent": ranks.exponent,
        }
    if sample.heaps is not None:
        law = sample.heaps
        found |= {"heaps_beta": law.beta, "heaps_alpha": law.alpha, "heaps_dispersion": law.dispersion}
    gap = types_gap(sample.types, truth.types_by_length)
    if gap is not None:
        found["types_gap"] = gap
    if sizes.tokens:
        found["types"] = sample.rarefied(sizes.tokens)
    if sizes.pairs:
        found["bigram_types"] = sample.rarefied_bigrams(sizes.pairs)
    return found


def types_gap(types: TypeCounts, expected: FloatArray) -> float | None:
    """Mean over sentences of their number of types, minus what is expected at their length; None if none can be."""
    n = types.sentences
    means = np.where(n > 0, types.means(), 0.0)
    wanted = np.zeros(len(n))
    wanted[: min(len(n), len(expected))] = expected[: len(n)]
    there = (n > 0) & (wanted > 0)  # a length that cannot be has no expectation
    return float(n[there] @ (means - wanted)[there]) / float(n[there].sum()) if there.any() else None
