"""Measures of one sample: numbers that a truth or a reference is compared on, and curves that figures draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truesource.evaluation.measures.discrete_tests import atoms, distances
from truesource.evaluation.measures.integer_corpus import Encoded, expected_types
from truesource.evaluation.measures.monte_carlo import ChanceTest
from truesource.evaluation.tendencies.findings import Parts, SampleCurves, TendencyTable
from truesource.evaluation.tendencies.rank_frequency import RankFrequency, by_rank_of, rank_frequency
from truesource.evaluation.tendencies.truth import TrueText, shares
from truesource.evaluation.tendencies.type_token import (
    Heaps,
    HeapsLaw,
    LengthDistances,
    TypeCounts,
    fit_heaps,
    length_distances,
    pairs_of,
    type_counts,
)
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED

#: distances of types at one length, by the name of their mean over lengths
_AT_LENGTHS: Mapping[str, Callable[[LengthDistances], ChanceTest | None]] = {
    "types_ks_own_law": lambda at: at.to_own_law,
    "types_ks_reference_law": lambda at: at.to_reference_law,
    "types_ks": lambda at: at.to_reference,
}


@dataclass(frozen=True)
class Sample:
    """Some sentences, counted once."""

    corpus: Encoded
    classes: Mapping[str, IntArray]  #: codes of the words of each class, such as stopwords
    longest: int  #: tables of lengths go up to it
    unknown: int | None = None  #: code of ``<unk>``, which is no word: it has no rank and is no type

    @cached_property
    def counts(self) -> IntArray:
        """Count of every word, (V,)."""
        return self.corpus.counts()

    @cached_property
    def known(self) -> IntArray:
        """`counts` without ``<unk>``, (V,)."""
        counts = self.counts
        if self.unknown is not None:
            counts = counts.copy()
            counts[self.unknown] = 0
        return counts

    @cached_property
    def bigrams(self) -> IntArray:
        """Count of every pair of known neighbours that occurs."""
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
        """The law of its types; None without a law."""
        try:
            return fit_heaps(self.types)
        except InputError:
            return None

    def shares(self, name: str) -> FloatArray:
        """Return shares of one class in the sentences, (N,)."""
        return shares(self.corpus, self.classes[name])

    def rarefied(self, tokens: int) -> float:
        """Return the expected number of word types in some of its known tokens."""
        return expected_types(self.known, tokens)

    def rarefied_bigrams(self, pairs: int) -> float:
        """Return the expected number of bigram types in some of its known pairs."""
        return expected_types(self.bigrams, pairs)


@dataclass(frozen=True)
class Sizes:
    """Sizes at which different words are counted, the same for all samples of a table."""

    tokens: int
    pairs: int


def ranks_against(sample: Sample, truth: TrueText) -> RankFrequency | None:
    """Rank-frequency by the truth's own ranks; None if there are too few words."""
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


def against(sample: Sample, truth: TrueText, sizes: Sizes) -> dict[str, float]:
    """Return all measures with a null distribution from samples of the truth; odd samples lack some."""
    counts = sample.counts
    exact = np.pad(truth.unigram, (0, len(counts) - len(truth.unigram)))
    words = distances(counts / counts.sum(), exact)
    values = {"unigram_tv": float(words["tv"]), "unigram_linf": float(words["linf"])}
    if sample.unknown is not None:
        values["unknown_share"] = float(counts[sample.unknown] / counts.sum())
    ranks = ranks_against(sample, truth)
    if ranks is not None:
        values |= {
            "rank_ks": ranks.to_reference,
            "rank_ks_own_law": ranks.to_own_law,
            "rank_ks_reference_law": ranks.to_reference_law,
            "zipf_exponent": ranks.exponent,
        }
    if sample.heaps is not None:
        law = sample.heaps
        values |= {"heaps_beta": law.beta, "heaps_alpha": law.alpha, "heaps_dispersion": law.dispersion}
    gap = types_gap(sample.types, truth.types_by_length)
    if gap is not None:
        values["types_gap"] = gap
    if sizes.tokens:
        values["types"] = sample.rarefied(sizes.tokens)
    if sizes.pairs:
        values["bigram_types"] = sample.rarefied_bigrams(sizes.pairs)
    return values


def types_gap(types: TypeCounts, expected: FloatArray) -> float | None:
    """Return the mean over sentences of observed less expected types at their length; None if nothing is expected."""
    n = types.sentences
    means = np.where(n > 0, types.means(), 0.0)
    expected_types_by_length = np.zeros(len(n))
    expected_types_by_length[: min(len(n), len(expected))] = expected[: len(n)]
    there = (n > 0) & (expected_types_by_length > 0)  # impossible lengths have no expectation
    return float(n[there] @ (means - expected_types_by_length)[there]) / float(n[there].sum()) if there.any() else None


def curves_of(
    sample: Sample,
    by_rank: IntArray,
    ranks: RankFrequency | None,
    null: Mapping[str, FloatArray],
    *,
    base: TypeCounts | None = None,
    law: HeapsLaw | None = None,
    seed: int = DEFAULT_SEED,
) -> SampleCurves:
    """Collect the curves of one sample.

    Args:
        sample: what is drawn.
        by_rank: its counts by rank.
        ranks: its laws.
        null: draws of its measures.
        base: types of the text it is compared with, or of samples of the truth.
        law: of the truth's types.
        seed: of the tests at each length.
    """
    try:
        by_length = length_distances(sample.types, base, law=law, seed=seed)
    except InputError:  # no law where all sentences are of one length
        by_length = []
    shares = {}
    for name in sample.classes:
        values, (counts,) = atoms(sample.shares(name))
        shares[name] = values, counts
    return SampleCurves(
        lengths=np.bincount(sample.corpus.lengths, minlength=sample.longest + 1),
        types=sample.types,
        bigram_types=sample.bigram_types,
        by_length=by_length,
        by_rank=by_rank,
        ranks=ranks,
        heaps=sample.heaps,
        shares=shares,
        null=null,
    )


def describe(table: TendencyTable, source: str, sample: Sample, curves: SampleCurves, parts: Parts) -> None:
    """Add the values of one sample.

    ``length_mean`` and ``<class>_mean`` are means over sentences, ``types_all`` is the number of different words of the
    whole sample, ``bigram_heaps_beta`` and ``bigram_heaps_alpha`` are Heaps' law of pairs of words. ``types_ks`` and
    the like are distances of the numbers of types at one length, a mean over lengths weighted by sentences;
    ``<name>_growth`` is the mean over the longer lengths less the mean over the shorter ones, both less their
    expectation by chance, since long sentences are few.

    Args:
        table: to add to.
        source: name of the sample.
        sample: its sentences.
        curves: what is drawn of it.
        parts: of the signatures.
    """
    table.add(source, "length", "length_mean", float(sample.corpus.lengths.mean()), None, parts)
    for label in sample.classes:
        table.add(source, label, f"{label}_mean", float(sample.shares(label).mean()), None, parts)
    table.add(source, "vocabulary", "types_all", float(np.count_nonzero(sample.known)), None, parts)
    try:
        pairs = fit_heaps(sample.bigram_types)
    except InputError:  # sentences of one length, or without pairs
        pairs = None
    if pairs is not None:
        table.add(source, "type-token", "bigram_heaps_beta", pairs.beta, None, parts)
        table.add(source, "type-token", "bigram_heaps_alpha", pairs.alpha, None, parts)
    for name, test_of in _AT_LENGTHS.items():
        mean, growth = mean_distance(curves.by_length, test_of)
        if mean is not None:
            table.add(source, "type-token", name, mean, None, parts)
        if growth is not None:
            table.add(source, "type-token", f"{name}_growth", growth, None, parts)


def mean_distance(
    by_length: Sequence[LengthDistances], test_of: Callable[[LengthDistances], ChanceTest | None]
) -> tuple[float | None, float | None]:
    """Return mean over lengths, and its growth from the shorter half of the lengths to the longer; None without a test.

    Args:
        by_length: distances at each length, ascending.
        test_of: takes one of them.
    """
    tested = [(at.sentences, test) for at in by_length if (test := test_of(at)) is not None]
    if not tested:
        return None, None
    weight = np.array([n for n, _ in tested], dtype=np.float64)
    value = np.array([test.value for _, test in tested])
    above = value - np.array([test.null_mean for _, test in tested])
    half = len(tested) // 2
    if half == 0:
        return _mean(value, weight), None
    return _mean(value, weight), _mean(above[-half:], weight[-half:]) - _mean(above[:half], weight[:half])


def _mean(values: FloatArray, weights: FloatArray) -> float:
    return float(np.average(values, weights=weights))
