"""Findings of a comparison of tendencies, what figures draw, and the table that comparisons fill."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.measures.discrete_tests import MeanDifference
from truesource.evaluation.measures.monte_carlo import ChanceTest, Tail, holm
from truesource.evaluation.tendencies import TendencySettings
from truesource.evaluation.tendencies.rank_frequency import RankFrequency
from truesource.evaluation.tendencies.type_token import Heaps, HeapsLaw, LengthDistances, TypeCounts
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords

#: how chance is sampled: samples of the truth, draws of an exact distribution, sentences dealt anew or permuted
Null = Literal["samples", "draws", "deals", "permutations"]
Parts = Mapping[str, object]  #: of a signature: which text a number is of, and how it was computed
Sentences = Sequence[Sequence[str]]
LEVEL = 0.05
#: part of the table of each measure, and the side of its test
KINDS: dict[str, tuple[str, Tail]] = {
    "unigram_tv": ("unigram", "upper"),
    "unigram_linf": ("unigram", "upper"),
    "unknown_share": ("unigram", "both"),
    "rank_ks": ("rank-frequency", "upper"),
    "rank_ks_own_law": ("rank-frequency", "upper"),
    "rank_ks_reference_law": ("rank-frequency", "upper"),
    "zipf_exponent": ("rank-frequency", "both"),
    "heaps_beta": ("type-token", "both"),
    "heaps_alpha": ("type-token", "both"),
    "heaps_dispersion": ("type-token", "both"),
    "types_gap": ("type-token", "both"),
    "types": ("vocabulary", "both"),
    "bigram_types": ("vocabulary", "both"),
}
WHY = {
    "rank_ks": "too few of its words have a rank for Zipf's law",
    "zipf_exponent": "too few of its words have a rank for Zipf's law",
    "heaps_beta": "Heaps' law needs sentences of two lengths or more, and some of more than one word",
    "types_gap": "none of its lengths is possible",
    "types": "a sample has, or could have, no word that is known",
    "bigram_types": "a sample has, or could have, no two neighbouring words that are known",
}


@dataclass(frozen=True)
class Finding:
    """One measure of one sample, with its test if it has one."""

    tendency: str  #: ``length``, ``unigram``, ``rank-frequency``, ``type-token``, ``vocabulary``, or a class of words
    score: Score
    test: ChanceTest | None = None
    p_holm: float | None = None  #: adjusted for all tests of a family
    family: str | None = None  #: which tests that family has, in words
    null: Null | None = None  #: of the test

    def as_score(self) -> Score:
        """Return the score with its tendency, and the numbers of its test."""
        score = self.score.at(tendency=self.tendency)
        if self.test is None:
            return score
        return score.with_more(
            p=self.test.p,
            p_holm=self.p_holm,
            family=self.family,
            chance_mean=self.test.null_mean,
            chance_low=self.test.null_low,
            chance_high=self.test.null_high,
            draws=self.test.draws,
            null=self.null,
        )


@dataclass(frozen=True, kw_only=True)
class SampleCurves:
    """Curves that figures draw of one sample."""

    lengths: IntArray  #: sentences of 0, 1, ... tokens
    types: TypeCounts
    bigram_types: TypeCounts
    by_length: list[LengthDistances]  #: of the types; empty if Heaps' law cannot be fitted
    by_rank: IntArray  #: counts by rank
    ranks: RankFrequency | None  #: None if there are too few words
    heaps: Heaps | None
    shares: Mapping[str, tuple[FloatArray, IntArray]]  #: of each class: values, and sentences with each
    null: Mapping[str, FloatArray]  #: draws of the distances of word frequencies


@dataclass(frozen=True, kw_only=True)
class TruthCurves:
    """Curves of a truth next to samples; arrays by length go up to the longest sentence of the table."""

    lengths: FloatArray  #: (L+1,) probability of each number of tokens
    types: FloatArray  #: (L+1,) expected different words of a sentence; 0 if there is no such length
    heaps: HeapsLaw | None  #: the law of these
    by_rank: FloatArray  #: (V,) probabilities of words, descending
    exponent: float | None  #: of the Zipf law of these
    shares: Mapping[str, tuple[FloatArray, FloatArray]]  #: of each class: values, and their probabilities
    #: ``own``, ``reference_law`` and ``reference``: Kolmogorov-Smirnov distances of types at one length, as
    #: `LengthDistances`, of samples of the truth of the commonest size: ends of the middle 95%, (2, L+1); NaN if
    #: these have too few sentences of a length
    floor: Mapping[str, FloatArray]


@dataclass(frozen=True, repr=False)
class Tendencies(ResultRecords):
    """Samples compared with a truth or another text."""

    against: str  #: ``truth`` or ``sample``
    reference: str  #: what it is called
    findings: dict[str, dict[str, Finding]]  #: by sample, then by name of the measure
    curves: dict[str, SampleCurves]  #: by sample; of the reference too if it is a text
    notes: list[str] = field(default_factory=list)  #: what was excluded, and why
    truth: TruthCurves | None = None  #: of a known truth
    tokens: int = 0  #: in how many tokens of each sample different words are counted
    draws_needed: int | None = None  #: of each test, for stars to be possible; None if each has as many

    def adjusted(self) -> Tendencies:
        """Adjust the p-values (Holm) for all tests of the table."""
        return self.adjusted_for({s: list(row) for s, row in self.findings.items()}, "all {} tests of the comparison")

    def adjusted_for(self, members: Mapping[str, Sequence[str]], family: str) -> Tendencies:
        """Adjust the p-values of some measures of some samples (Holm) for all of these together.

        Args:
            members: names of the measures by sample; those without a test, or that a sample does not have, are skipped.
            family: what the members are, in words; ``{}`` is the number of tests.
        """
        findings = {source: dict(row) for source, row in self.findings.items()}
        tested = [
            (source, name, finding, finding.test.p)
            for source, names in members.items()
            for name in names
            if (finding := findings[source].get(name)) is not None and finding.test is not None
        ]
        named = family.format(len(tested))
        for (source, name, finding, _), p in zip(tested, holm([p for *_, p in tested]), strict=True):
            findings[source][name] = replace(finding, p_holm=p, family=named)
        return replace(self, findings=findings)

    @override
    def as_scores(self) -> list[Score]:
        return [
            finding.as_score().at(source=source) for source, row in self.findings.items() for finding in row.values()
        ]


class TendencyTable:
    """Findings as they come."""

    def __init__(self, against: str, reference: str, options: TendencySettings, *, called: str | None = None) -> None:
        self._options = options
        self._parts = {"against": f"{against}/{reference}"}
        self._found = Tendencies(against, called or reference, {}, {})
        self.curves: dict[str, SampleCurves] = self._found.curves

    def add(
        self,
        source: str,
        tendency: str,
        name: str,
        value: float,
        test: ChanceTest | None,
        parts: Parts,
        ends: tuple[float | None, float | None] = (None, None),
        *,
        null: Null | None = None,
    ) -> None:
        """Add one measure of one sample; ``null``: how the null distribution of its test is sampled."""
        common = {"variant": self._options.variant, "seed": self._options.seed}
        score = Score(name, value, signature({**self._parts, **parts, **common}), *ends)
        self._found.findings.setdefault(source, {})[name] = Finding(tendency, score, test, null=null)

    def add_distances(
        self, source: str, tendency: str, tests: Mapping[str, ChanceTest], parts: Parts, null: Null
    ) -> None:
        """Add distances between distributions of a value that every sentence has."""
        for measure in ("ks", "tv", "linf", "chi_square"):
            if (test := tests.get(measure)) is not None:
                self.add(source, tendency, f"{tendency}_{measure}", test.value, test, parts, null=null)

    def add_impossible(self, source: str, tendency: str, share: float, parts: Parts) -> None:
        """Add the share of sentences with impossible values; a single one proves that the distributions differ."""
        self.add(source, tendency, f"{tendency}_impossible", share, None, {**parts, "unit": "share"})

    def add_outside(self, source: str, share: float, parts: Parts) -> None:
        """Add the share of tokens that the grammar lacks; a single one proves that the distributions differ."""
        self.add(source, "unigram", "outside_share", share, None, {**parts, "unit": "share"})

    def add_mean(self, source: str, tendency: str, difference: MeanDifference, parts: Parts, null: Null) -> None:
        """Add a difference of means, with its effect size."""
        ends, test = (difference.low, difference.high), difference.test
        signed = {**parts, "ci": difference.ci}
        self.add(source, tendency, f"{tendency}_mean_difference", difference.difference, test, signed, ends, null=null)
        self.add(source, tendency, f"{tendency}_effect", difference.effect, None, {**parts, "unit": "sd"})

    def note(self, source: str, measure: str, reason: str | None = None) -> None:
        """Record why a sample does not have a measure; by default, the reason in `WHY`."""
        reason = reason or WHY.get(measure)
        line = f"{source}: no {measure}; {reason}"
        if reason and line not in self._found.notes:
            self._found.notes.append(line)

    def remark(self, line: str) -> None:
        """Add a remark for readers of the table."""
        self._found.notes.append(line)

    def done(self, tokens: int, truth: TruthCurves | None = None) -> Tendencies:
        """Return the table with adjusted p-values.

        Args:
            tokens: in how many different words are counted.
            truth: what is drawn of it if it is known.
        """
        tests = [f.test for row in self._found.findings.values() for f in row.values() if f.test is not None]
        coarse = max((1.0 / (1 + test.draws) for test in tests), default=0.0)
        needed = math.ceil(len(tests) / LEVEL) if coarse * len(tests) > LEVEL else None
        return replace(self._found.adjusted(), truth=truth, tokens=tokens, draws_needed=needed)


def check_sources(sources: Mapping[str, Sentences]) -> None:
    """Refuse samples that cannot be measured.

    Raises:
        InputError: there is no sample, one is empty, or one has a sentence without words.
    """
    if not sources:
        raise InputError("there is no sample to compare")
    for name, sentences in sources.items():
        if not len(sentences):
            raise InputError(f"the sample {name!r} is empty; give at least one sentence")
        for number, sentence in enumerate(sentences, 1):
            if not len(sentence):
                raise InputError(f"sentence {number} of the sample {name!r} has no words; leave it out")


def classes_of(options: TendencySettings, words: Sequence[str]) -> dict[str, IntArray]:
    """Return codes of the members of each class among the words of all samples, by code."""
    code = {word: i for i, word in enumerate(words)}
    return {name: np.array([code[w] for w in pick(words)], dtype=np.int64) for name, pick in options.classes.items()}
