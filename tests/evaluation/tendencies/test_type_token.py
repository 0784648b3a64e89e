"""Types by length and Heaps' law, against counting, scipy's optimiser and known laws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from truesource.evaluation.measures.integer_corpus import encode
from truesource.evaluation.tendencies.against_sample import type_tests
from truesource.evaluation.tendencies.against_truth import floor
from truesource.evaluation.tendencies.type_token import (
    HeapsLaw,
    TypeCounts,
    fit_heaps,
    fit_means,
    length_distances,
    pooled,
    to_laws,
    type_counts,
    types_by_sentence,
)
from truesource.grammar.support.errors import InputError

SENTENCES = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), min_size=1, max_size=10)


@given(SENTENCES)
def test_types_by_sets(sentences: list[list[str]]) -> None:
    (corpus,) = encode([sentences])
    assert types_by_sentence(corpus).tolist() == [len(set(s)) for s in sentences]
    pairs = [len(set(pairwise(s))) for s in sentences]
    assert types_by_sentence(corpus, 2).tolist() == pairs
    counts = type_counts(corpus, high=8)
    assert counts.sentences.shape == counts.means().shape == counts.errors().shape == (9,)
    assert (counts.count > 0).all()
    assert counts.lengths.tolist() == sorted({len(s) for s in sentences})
    for length in range(9):
        values = [len(set(s)) for s in sentences if len(s) == length]
        assert counts.sentences[length] == len(values)
        assert counts.row(length, 7).tolist() == [values.count(u) for u in range(7)]
        if values:
            assert counts.means()[length] == pytest.approx(np.mean(values))
        if len(values) > 1:
            assert counts.errors()[length] == pytest.approx(stats.sem(values), abs=1e-12)


def poisson_text(alpha: float, beta: float, seed: int) -> TypeCounts:
    """Tabulated Poisson counts, which are no text: the law itself."""
    rng = np.random.default_rng(seed)
    length = rng.integers(1, 60, 30_000)
    types = rng.poisson(alpha * length**beta)
    return TypeCounts.of(length, types, 59)


def test_the_law_is_found_again() -> None:
    counts = poisson_text(1.39, 0.84, 0)
    found = fit_heaps(counts)
    assert abs(found.alpha - 1.39) < 4 * found.alpha_error
    assert abs(found.beta - 0.84) < 4 * found.beta_error
    assert found.dispersion == pytest.approx(1.0, abs=0.05)
    length, types, weight = counts.length, counts.types, counts.count

    def loss(at: np.ndarray) -> float:
        return -float(weight @ stats.poisson.logpmf(types, np.exp(at[0]) * length ** at[1]))

    wanted = optimize.minimize(loss, [0.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9})
    assert (np.log(found.alpha), found.beta) == pytest.approx(wanted.x, abs=1e-6)


@pytest.mark.long
def test_errors_cover_the_truth() -> None:
    inside = 0
    for seed in range(60):
        found = fit_heaps(poisson_text(2.0, 0.7, seed))
        inside += abs(found.beta - 0.7) < 1.96 * found.beta_error
    assert inside >= stats.binom.ppf(1e-3, 60, 0.95)


@pytest.mark.long
def test_text_is_less_dispersed_than_poisson() -> None:
    """Independent words of Zipf's law: the number of types varies much less than a Poisson count of that mean."""
    rng = np.random.default_rng(1)
    p = 1 / np.arange(1, 2001)
    sentences = [[*map(str, rng.choice(2000, n, p=p / p.sum()))] for n in rng.integers(5, 60, 3000)]
    (corpus,) = encode([sentences])
    counts = type_counts(corpus)
    assert fit_heaps(counts).dispersion < 0.3
    at_40 = next(d for d in length_distances(counts, None, draws=99) if d.length == 40)
    assert at_40.to_own_law.value > 0.1
    assert at_40.to_own_law.p == 0.01


def test_distances_at_each_length() -> None:
    rng = np.random.default_rng(2)

    def text(words: int, n: int) -> list[list[str]]:
        return [[*map(str, rng.integers(0, words, rng.integers(4, 7)))] for _ in range(n)]

    same, other, few = encode([text(30, 900), text(30, 900), text(4, 900)])
    a, b, c = (type_counts(x, high=6) for x in (same, other, few))
    equal = length_distances(a, b, draws=199)
    assert [d.length for d in equal] == [4, 5, 6]
    assert min(d.to_reference.p for d in equal if d.to_reference) > 0.01
    differ = length_distances(a, c, draws=199)
    assert max(d.to_reference.p for d in differ if d.to_reference) == 1 / 200
    row, rest = (x.row(5, 7) / x.sentences[5] for x in (a, c))
    assert differ[1].to_reference is not None
    assert differ[1].to_reference.value == pytest.approx(np.abs(np.cumsum(row) - np.cumsum(rest)).max())
    law = fit_heaps(a)
    cdf = stats.poisson.cdf(np.arange(7), law.alpha * 5**law.beta)
    assert equal[1].to_own_law.value == pytest.approx(max(np.abs(np.cumsum(row) - cdf).max(), 0), abs=1e-12)


def test_what_has_no_law() -> None:
    (corpus,) = encode([[["a", "b"], ["a", "a"]]])
    with pytest.raises(InputError, match="two lengths or more"):
        fit_heaps(type_counts(corpus))
    (short,), (long,) = encode([[["a"], ["a", "b"]]]), encode([[["a", "b", "c"], ["a"]]])
    with pytest.raises(InputError, match="different lengths"):
        length_distances(type_counts(short), type_counts(long))


def test_the_law_of_exact_means_is_the_law() -> None:
    length = np.arange(2, 30)
    found = fit_means(length, np.linspace(0.1, 0.01, 28), HeapsLaw(1.2, 0.9).mean(length))
    assert (found.alpha, found.beta) == pytest.approx((1.2, 0.9), rel=1e-10)
    counts = poisson_text(1.39, 0.84, 1)
    at = np.flatnonzero(counts.sentences)
    own, again = fit_heaps(counts), fit_means(at, counts.sentences[at] / 30_000, counts.means()[at])
    assert (again.alpha, again.beta) == pytest.approx((own.alpha, own.beta), rel=1e-10)


def test_distances_to_a_law_at_all_lengths_are_those_at_each() -> None:
    counts = poisson_text(1.2, 0.9, 2)
    own = fit_heaps(counts)
    values = to_laws(counts, own)
    for row in length_distances(counts, None, draws=19):
        assert values[row.length] == pytest.approx(row.to_own_law.value, abs=1e-12)
    assert np.isnan(values[0])


@pytest.mark.long
def test_the_floor_holds_samples_of_the_truth_and_not_others() -> None:
    tables = [poisson_text(1.2, 0.9, seed) for seed in range(40)]
    assert pooled(tables).count.sum() == 40 * 30_000
    found = floor(tables[1:], HeapsLaw(1.2, 0.9))
    there = np.isfinite(found["reference"][0])
    assert there[1:60].all()
    inside = []
    for kind, field in (("own", "to_own_law"), ("reference_law", "to_reference_law"), ("reference", "to_reference")):
        low, high = found[kind]
        rows = length_distances(tables[0], pooled(tables[1:]), law=HeapsLaw(1.2, 0.9), draws=19)
        inside += [low[r.length] <= getattr(r, field).value <= high[r.length] for r in rows]
    assert 0.88 < np.mean(inside) < 0.995
    other = poisson_text(1.2, 0.8, 9)
    gaps = length_distances(other, pooled(tables[1:]), law=HeapsLaw(1.2, 0.9), draws=19)
    assert np.mean([r.to_reference.value > found["reference"][1][r.length] for r in gaps if r.to_reference]) > 0.9


def test_a_floor_of_few_sentences_is_not_there() -> None:
    (corpus,) = encode([[["a", "b"]] * 30 + [["a"]] * 5])
    found = floor([type_counts(corpus)] * 3, None)
    assert np.isfinite(found["reference"][:, 2]).all()
    assert np.isnan(found["reference"][:, 1]).all()
    assert np.isnan(found["reference_law"]).all()


def test_texts_of_very_long_lines_are_counted() -> None:
    """30,000 tokens a line: a table of lengths by numbers of types would have 900 million cells."""
    long, short = [f"w{i % 997}" for i in range(30_000)], ["a", "b"]
    texts = encode([[*[long] * 9, *[short] * 25], [*[long[:29_990]] * 9, *[short] * 25]])
    first, second = (type_counts(corpus, high=30_000) for corpus in texts)
    assert first.means()[30_000] == 997
    assert len(first.count) == 2
    assert [d.length for d in length_distances(first, second, draws=19)] == [2]
    assert np.isfinite(floor([first, first], fit_heaps(first))["reference"][:, 2]).all()
    assert type_tests(first, second, draws=19) is not None


def test_unknown_words_are_no_types() -> None:
    (corpus,) = encode([[["a", "<unk>", "b", "a"], ["<unk>"], ["b", "a", "b"]]])
    assert types_by_sentence(corpus, without=1).tolist() == [2, 0, 2]
    assert types_by_sentence(corpus, 2, without=1).tolist() == [1, 0, 2]
    counts = type_counts(corpus, without=1)
    assert counts.length.tolist() == [1, 3, 4]  # with the unknown ones
    assert counts.types.tolist() == [0, 2, 2]
