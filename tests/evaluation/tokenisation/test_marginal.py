"""Sums over lattices against all cuts listed one by one, and against each other."""

from __future__ import annotations

import math

import enumerated_cuts as truth
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.evaluation.tokenisation._kernels.sums import _decay
from truesource.evaluation.tokenisation.lattice import (
    Lattice,
    LatticeBuilder,
    arc_marginals,
    best_path,
    count_paths,
    entropy,
    forward,
    log_partition,
    partition_and_entropy,
)
from truesource.grammar.support.errors import InputError

TEMPERATURES = (0.0, 0.1, 0.3, 1.0, 2.0, 50.0)
words = st.text("abc", min_size=2, max_size=4)
scores = st.floats(-20.0, 1.0)
vocabularies = st.builds(
    dict[str, float].__or__,
    st.dictionaries(words, scores, max_size=12),
    st.fixed_dictionaries(dict.fromkeys("abc", scores)),
)
texts = st.text("abc", min_size=1, max_size=9)


def lattice_of(vocabulary: dict[str, float], text: str) -> Lattice:
    return LatticeBuilder(truth.inventory(vocabulary)).build(text)


def long_lattice(n: int, *, smallest: float = -20.0, seed: int = 1) -> Lattice:
    """Of a text of n letters with about two arcs a letter."""
    rng = np.random.default_rng(seed)
    pieces = {"".join(rng.choice(list("abcde"), size=k)): 0.0 for k in (2, 2, 2, 3, 3, 4, 5, 6) for _ in range(4)}
    vocabulary = {p: float(rng.uniform(smallest, -1.0)) for p in (*"abcde", *pieces)}
    return lattice_of(vocabulary, "".join(rng.choice(list("abcde"), size=n)))


@given(vocabularies, texts, st.sampled_from(TEMPERATURES))
def test_sums_equal_those_over_all_cuts(vocabulary: dict[str, float], text: str, b: float) -> None:
    lattice = lattice_of(vocabulary, text)
    names = list(vocabulary)
    assert log_partition(lattice, b) == pytest.approx(truth.log_partition(text, vocabulary, b), rel=1e-10, abs=1e-10)
    assert entropy(lattice, b) == pytest.approx(truth.entropy(text, vocabulary, b), rel=1e-9, abs=1e-10)
    assert entropy(lattice, b) >= 0.0
    assert count_paths(lattice) == len(truth.cuts(text, vocabulary))
    expected = truth.marginals(text, vocabulary, b)
    found = dict(
        zip(
            zip(lattice.source.tolist(), [names[p] for p in lattice.piece], strict=True),
            arc_marginals(lattice, b),
            strict=True,
        )
    )
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-10)
    a = forward(lattice, b)
    for i in range(1, lattice.n + 1):
        assert a[i] == pytest.approx(truth.log_partition(text[:i], vocabulary, b), rel=1e-10, abs=1e-10)


@given(vocabularies, texts)
def test_best_path(vocabulary: dict[str, float], text: str) -> None:
    lattice = lattice_of(vocabulary, text)
    path = best_path(lattice)
    expected = max(truth.score(cut, vocabulary) for cut in truth.cuts(text, vocabulary))
    assert lattice.score[path].sum() == pytest.approx(expected, abs=1e-10)
    assert "".join(list(vocabulary)[p] for p in lattice.piece[path]) == text


def test_ties_go_to_fewer_pieces_and_then_to_a_longer_last_one() -> None:
    flat = {"a": 0.0, "aa": 0.0, "aaa": 0.0}
    for text, lengths in (("aaaa", [1, 3]), ("aaaaa", [2, 3]), ("aaa", [3])):
        lattice = lattice_of(flat, text)
        assert (lattice.piece[best_path(lattice)] + 1).tolist() == lengths


@given(vocabularies, texts, st.floats(0.0, 5.0))
def test_entropy_is_what_the_slope_of_log_z_says(vocabulary: dict[str, float], text: str, b: float) -> None:
    """H = log Z_b - b dlog Z_b/db; the slope is the expected score, which marginals give."""
    lattice = lattice_of(vocabulary, text)
    slope = float(arc_marginals(lattice, b) @ lattice.score)
    assert entropy(lattice, b) == pytest.approx(log_partition(lattice, b) - b * slope, abs=1e-10)


def test_the_slope_is_that_of_log_z() -> None:
    lattice = long_lattice(300)
    slope = float(arc_marginals(lattice, 0.7) @ lattice.score)
    step = 1e-5
    ratio = (log_partition(lattice, 0.7 + step) - log_partition(lattice, 0.7 - step)) / (2.0 * step)
    assert slope == pytest.approx(ratio, rel=1e-7)


@pytest.mark.parametrize("b", TEMPERATURES)
def test_a_corpus_as_one_text(b: float) -> None:
    """137,000 characters: every quantity a number, entropy as the slope says, marginals of every letter sum to 1."""
    lattice = long_lattice(137_000, smallest=-30.0)
    log_z, h = partition_and_entropy(lattice, b)
    marginal = arc_marginals(lattice, b)
    assert log_z == pytest.approx(forward(lattice, b)[-1], rel=1e-12)
    assert h == pytest.approx(log_z - b * float(marginal @ lattice.score), rel=1e-9, abs=1e-9 * abs(log_z) + 1e-9)
    lengths = np.repeat(np.arange(lattice.n + 1), np.diff(lattice.first)) - lattice.source
    assert float(marginal @ lengths) == pytest.approx(lattice.n, rel=1e-10)
    assert ((marginal >= 0.0) & (marginal <= 1.0 + 1e-9)).all()


def test_a_corpus_as_one_text_in_pure_python() -> None:
    lattice = long_lattice(137_000, smallest=-30.0)
    a = [0.0] + [-math.inf] * lattice.n
    source, score, first = lattice.source.tolist(), lattice.score.tolist(), lattice.first.tolist()
    for i in range(1, lattice.n + 1):
        a[i] = truth.log_sum(a[source[w]] + 0.3 * score[w] for w in range(first[i], first[i + 1]))
    assert log_partition(lattice, 0.3) == pytest.approx(a[-1], rel=1e-11)


def test_uniform_over_paths_at_zero() -> None:
    lattice = long_lattice(200)
    number = math.log(count_paths(lattice))
    assert log_partition(lattice, 0.0) == pytest.approx(number, rel=1e-12)
    assert entropy(lattice, 0.0) == pytest.approx(number, rel=1e-12)


def test_numbers_of_paths_are_exact() -> None:
    """Pieces of one and two letters: Fibonacci numbers, far beyond 64 bits; none meet between the ends."""
    lattice = lattice_of({"a": -1.0, "aa": -1.0}, "a" * 1000)
    x, y = 1, 1
    for _ in range(999):
        x, y = y, x + y
    assert count_paths(lattice) == y
    assert count_paths(lattice_of({"a": -1.0, "aa": -1.0, "b": -1.0}, "aab" * 3000)) == 2**3000
    assert count_paths(lattice_of({"ab": -1.0}, "abab")) == 1


@given(vocabularies, texts, st.floats(-5.0, 5.0))
def test_a_factor_for_every_character_changes_nothing_but_z(vocabulary: dict[str, float], text: str, c: float) -> None:
    """Scores + c * length: all paths gain the same, so Q stays."""
    one = lattice_of(vocabulary, text)
    other = lattice_of({p: s + c * len(p) for p, s in vocabulary.items()}, text)
    assert log_partition(other) == pytest.approx(log_partition(one) + c * len(text), abs=1e-10)
    assert entropy(other) == pytest.approx(entropy(one), abs=1e-10)
    np.testing.assert_allclose(arc_marginals(other), arc_marginals(one), atol=1e-10)


def test_scores_that_no_exponential_holds() -> None:
    """b * score to -1e6 and 1e6."""
    vocabulary = {"a": -1000.0, "b": -2000.0, "ab": -3000.0 - math.log(3.0), "ba": 1000.0}
    lattice = lattice_of(vocabulary, "abab")
    for b in (1.0, 1000.0):
        assert log_partition(lattice, b) == pytest.approx(truth.log_partition("abab", vocabulary, b), rel=1e-14)
        assert entropy(lattice, b) == pytest.approx(truth.entropy("abab", vocabulary, b), rel=1e-10, abs=1e-15)


def test_a_small_entropy() -> None:
    lattice = lattice_of({"a": 0.0, "b": 0.0, "ab": -20.0}, "ab")
    q = 1.0 / (1.0 + math.exp(20.0))
    assert entropy(lattice) == pytest.approx(-q * math.log(q) - (1.0 - q) * math.log1p(-q), rel=1e-9, abs=1e-16)
    assert entropy(lattice, 5.0) == pytest.approx(101.0 * math.exp(-100.0), abs=1e-15)


@pytest.mark.parametrize("b", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("text", ["a" * 3000, "aaaaaaaaac" * 300], ids=["paths never meet", "paths meet"])
def test_more_paths_than_a_float_can_count(text: str, b: float) -> None:
    """Both ways out of masses that grow too large, against marginals, which keep logarithms."""
    lattice = lattice_of({"a": -1.0, "aa": -2.1, "c": -3.0}, text)
    assert math.log(count_paths(lattice)) > 600.0
    log_z, h = partition_and_entropy(lattice, b)
    assert log_z == pytest.approx(forward(lattice, b)[-1], rel=1e-12)
    assert h == pytest.approx(log_z - b * float(arc_marginals(lattice, b) @ lattice.score), rel=1e-10)
    if b == 0.0:
        assert log_z == pytest.approx(math.log(count_paths(lattice)), rel=1e-12)


def test_exponentials_of_our_own() -> None:
    lack = np.concatenate([np.linspace(0.0, 1.0, 1001), np.geomspace(1e-300, 699.99, 5001), [700.0, 1e4, np.inf]])
    weight = np.empty_like(lack)
    _decay(lack, weight)
    np.testing.assert_allclose(weight[:-3], np.exp(-lack[:-3]), rtol=2e-15)
    assert weight[0] == 1.0
    assert (weight[-3:] == 0.0).all()


def test_refused_temperatures() -> None:
    lattice = lattice_of({"a": -1.0, "aa": -2.0}, "aaa")
    for b in (-1.0, math.inf, math.nan):
        for measure in (forward, log_partition, entropy, arc_marginals):
            with pytest.raises(InputError, match="finite number, 0 or more"):
                measure(lattice, b)
    for measure in (forward, log_partition, entropy, arc_marginals):
        with pytest.raises(InputError, match="no longer numbers"):
            measure(lattice, 1e308)
