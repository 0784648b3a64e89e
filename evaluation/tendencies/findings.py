"""What comparisons of tendencies return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from truesource.evaluation.core.score import Score
from truesource.evaluation.measures.monte_carlo import ChanceTest, holm
from truesource.evaluation.tendencies.rank_frequency import RankFrequency
from truesource.evaluation.tendencies.type_token import Heaps, HeapsLaw, LengthDistances, TypeCounts
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.printable import ResultRecords

#: how chance is sampled: samples of the truth, draws of an exact distribution, sentences dealt anew or permuted
Null = Literal["samples", "draws", "deals", "permutations"]


@dataclass(frozen=True)
class Finding:
    """One measure of one sample, with its test where it has one."""

    tendency: str  #: ``length``, ``unigram``, ``rank-frequency``, ``type-token``, ``vocabulary``, or a class of words
    score: Score
    test: ChanceTest | None = None
    p_holm: float | None = None  #: adjusted for all tests of a family
    family: str | None = None  #: which tests that family has, in words
    null: Null | None = None  #: of the test

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        record = {"tendency": self.tendency, **self.score.as_record()}
        if self.test is not None:
            record |= {
                "p": self.test.p,
                "p_holm": self.p_holm,
                "family": self.family,
                "chance_mean": self.test.null_mean,
                "chance_low": self.test.null_low,
                "chance_high": self.test.null_high,
                "draws": self.test.draws,
                "null": self.null,
            }
        return record


@dataclass(frozen=True, kw_only=True)
class SampleCurves:
    """What is drawn of one sample."""

    lengths: IntArray  #: sentences of 0, 1, ... tokens
    types: TypeCounts
    bigram_types: TypeCounts
    by_length: list[LengthDistances]  #: of the types; empty where Heaps' law cannot be fitted
    by_rank: IntArray  #: counts by rank
    ranks: RankFrequency | None  #: None where there are too few words
    heaps: Heaps | None
    shares: Mapping[str, tuple[FloatArray, IntArray]]  #: of each class: values, and sentences with each
    null: Mapping[str, FloatArray]  #: draws of the distances of word frequencies


@dataclass(frozen=True, kw_only=True)
class TruthCurves:
    """What is drawn of a truth beside samples; arrays by length go up to the longest sentence of the table."""

    lengths: FloatArray  #: (L+1,) probability of each number of tokens
    types: FloatArray  #: (L+1,) expected different words of a sentence; 0 where there is no such length
    heaps: HeapsLaw | None  #: the law of these
    by_rank: FloatArray  #: (V,) probabilities of words, descending
    exponent: float | None  #: of the Zipf law of these
    shares: Mapping[str, tuple[FloatArray, FloatArray]]  #: of each class: values, and their probabilities
    #: ``own``, ``reference_law`` and ``reference``: Kolmogorov-Smirnov distances of types at one length, as
    #: `LengthDistances`, of samples of the truth of ``floor_sentences``: ends of the middle 95%, (2, L+1); NaN where
    #: these have too few sentences of a length
    floor: Mapping[str, FloatArray]
    floor_sentences: int


@dataclass(frozen=True, repr=False)
class Tendencies(ResultRecords):
    """Samples beside a truth or another text."""

    against: str  #: ``truth`` or ``sample``
    reference: str  #: what it is called
    findings: dict[str, dict[str, Finding]]  #: by sample, then by name of the measure
    curves: dict[str, SampleCurves]  #: by sample; of the reference too if it is a text
    notes: list[str] = field(default_factory=list)  #: what was left out, and why
    truth: TruthCurves | None = None  #: where the truth is known
    tokens: int = 0  #: in how many tokens of each sample different words are counted
    draws_needed: int | None = None  #: of each test, for stars to be possible; None where each has as many

    def adjusted(self) -> Tendencies:
        """With p-values adjusted (Holm) for all tests of the table."""
        return self.adjusted_for({s: list(row) for s, row in self.findings.items()}, "all {} tests of the comparison")

    def adjusted_for(self, members: Mapping[str, Sequence[str]], family: str) -> Tendencies:
        """With the p-values of some measures of some samples adjusted (Holm) for all of these together.

        Args:
            members: names of the measures by sample; those without a test, or that a sample does not have, are skipped.
            family: what the members are, in words; ``{}`` stands for the number of tests.
        """
        found = {source: dict(row) for source, row in self.findings.items()}
        tested = [
            (source, name, finding, finding.test.p)
            for source, names in members.items()
            for name in names
            if (finding := found[source].get(name)) is not None and finding.test is not None
        ]
        named = family.format(len(tested))
        for (source, name, finding, _), p in zip(tested, holm([p for *_, p in tested]), strict=True):
            found[source][name] = replace(finding, p_holm=p, family=named)
        return replace(self, findings=found)

    def records(self) -> list[dict[str, Any]]:
        """One row a sample and measure, for JSON."""
        return [{"source": s, **finding.as_record()} for s, row in self.findings.items() for finding in row.values()]
