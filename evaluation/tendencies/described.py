"""What a sample is like on its own, and how far its types are from a law at each length: values without a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from truesource.evaluation.measures.monte_carlo import ChanceTest
from truesource.evaluation.tendencies.findings import SampleCurves
from truesource.evaluation.tendencies.measured import Sample
from truesource.evaluation.tendencies.table import TendencyTable
from truesource.evaluation.tendencies.type_token import LengthDistances, fit_heaps
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

#: distances of types at one length, by the name of their mean over lengths
_AT_LENGTHS: Mapping[str, Callable[[LengthDistances], ChanceTest | None]] = {
    "types_ks_own_law": lambda at: at.to_own_law,
    "types_ks_reference_law": lambda at: at.to_reference_law,
    "types_ks": lambda at: at.to_reference,
}


def describe(
    table: TendencyTable, source: str, sample: Sample, curves: SampleCurves, parts: Mapping[str, object]
) -> None:
    """Add the values of one sample.

    ``length_mean`` and ``<class>_mean`` are means over sentences, ``types_all`` is the number of different words of the
    whole sample, ``bigram_heaps_beta`` and ``bigram_heaps_alpha`` are Heaps' law of pairs of words. ``types_ks`` and
    the like are distances of the numbers of types at one length, a mean over lengths weighted by sentences;
    ``<name>_growth`` is that mean over the longer lengths less that over the shorter ones, both less what chance gives,
    since long sentences are few.

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
    """Mean over lengths, and its growth from the shorter half of the lengths to the longer; None where there is none.

    Args:
        by_length: distances at each length, ascending.
        test_of: takes one of them.
    """
    found = [(at.sentences, test) for at in by_length if (test := test_of(at)) is not None]
    if not found:
        return None, None
    weight = np.array([n for n, _ in found], dtype=np.float64)
    value = np.array([test.value for _, test in found])
    above = value - np.array([test.null_mean for _, test in found])
    half = len(found) // 2
    if half == 0:
        return _mean(value, weight), None
    return _mean(value, weight), _mean(above[-half:], weight[-half:]) - _mean(above[:half], weight[:half])


def _mean(values: FloatArray, weights: FloatArray) -> float:
    return float(np.average(values, weights=weights))
