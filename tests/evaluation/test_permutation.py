"""Word frequencies of sentences that are dealt out anew, against slow references and their own size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from truesource.evaluation.measures._kernels import permutation as kernels
from truesource.evaluation.measures.discrete_tests import compare_words, permuted_words
from truesource.evaluation.measures.integer_corpus import Encoded, encode
from truesource.evaluation.measures.monte_carlo import p_value
from truesource.grammar.support.errors import InputError

WORDS = st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4), min_size=1, max_size=8)


def slow(a: list[list[str]], b: list[list[str]], ranks: int) -> tuple[float, float, float]:
    """The three distances, from word counts in dictionaries."""
    flat = [[word for sentence in side for word in sentence] for side in (a, b)]
    share = [{w: side.count(w) / len(side) for w in "abcdef"} for side in flat]
    gaps = [abs(share[0][w] - share[1][w]) for w in "abcdef"]
    ranked = [sorted((side.count(w) for w in "abcdef"), reverse=True)[:ranks] for side in flat]
    steps = [np.cumsum(r) / sum(r) for r in ranked]
    return sum(gaps) / 2, max(gaps), float(np.abs(steps[0] - steps[1]).max())


@pytest.mark.long
@given(WORDS, WORDS, st.integers(1, 8))
def test_distances_by_counting(a: list[list[str]], b: list[list[str]], ranks: int) -> None:
    first, second = encode([a, b])
    found = compare_words(first, second, ranks=ranks)
    assert tuple(found.values()) == pytest.approx(slow(a, b, ranks), abs=1e-12)


@pytest.mark.long
def test_large_counts_are_ranked_as_small_ones() -> None:
    counts = np.array([3, 70_000, 0, 5000, 4096, 4095, 3])
    assert kernels.ranked(counts).tolist() == sorted(counts.tolist(), reverse=True)


@pytest.mark.long
def test_every_set_of_sentences_is_as_likely() -> None:
    """All C(5, 2) choices; sentences of one word each, so that counts tell which were chosen."""
    tokens, offsets = np.arange(5, dtype=np.int32), np.arange(6, dtype=np.int64)
    state = np.random.default_rng(0).integers(0, 2**64, 4, dtype=np.uint64)
    seen = dict.fromkeys(itertools.combinations(range(5), 2), 0)
    counts = np.empty(5, dtype=np.int64)
    for _ in range(20_000):
        assert kernels.deal(tokens, offsets, 2, state, counts) == 2
        seen[tuple(np.flatnonzero(counts).tolist())] += 1
    assert stats.chisquare(list(seen.values())).pvalue > 1e-3


@pytest.mark.long
def test_the_null_distribution_by_all_deals() -> None:
    """Every way to deal 7 sentences to samples of 3 and 4, against drawn ones."""
    pool = [["a", "b"], ["a"], ["c", "c", "a"], ["b"], ["d"], ["d", "a"], ["b", "c"]]
    first, second = encode([pool[:3], pool[3:]])
    null = permuted_words(first, second, draws=6000, seed=3)
    every = []
    for chosen in itertools.combinations(range(7), 3):
        a = [pool[i] for i in chosen]
        every.append(slow(a, [pool[i] for i in range(7) if i not in chosen], 10_000))
    for column, name in enumerate(("tv", "linf", "rank_ks")):
        wanted = np.round([row[column] for row in every], 9)
        values, of = np.unique(np.concatenate([wanted, np.round(null[name], 9)]), return_inverse=True)
        exact = np.bincount(of[: len(every)], minlength=len(values)) / len(every)
        drawn = np.bincount(of[len(every) :], minlength=len(values))
        assert drawn[exact == 0].sum() == 0
        assert stats.chisquare(drawn[exact > 0], 6000 * exact[exact > 0]).pvalue > 1e-3


@pytest.mark.long
@pytest.mark.parametrize("sizes", [(2, 7), (7, 2), (4, 4)])
def test_one_seed_one_result_on_any_number_of_cores(sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    sides = [[[*map(str, rng.integers(0, 9, 5))] for _ in range(n)] for n in sizes]
    first, second = encode(sides)
    found = []
    for cores in ("1", "2"):
        monkeypatch.setenv("TRUESOURCE_THREADS", cores)
        found.append(permuted_words(first, second, draws=40, seed=5))
    for name in found[0]:
        assert np.array_equal(found[0][name], found[1][name])
    assert not np.array_equal(found[0]["tv"], permuted_words(first, second, draws=40, seed=6)["tv"])


def test_samples_encoded_apart_are_refused() -> None:
    (first,), (second,) = encode([[["a", "b"]]]), encode([[["a"]]])
    with pytest.raises(InputError, match="encode them together"):
        compare_words(first, second)


# -- size: sentences in which a word comes again ----------------------------------------------------


def repeated(rng: np.random.Generator, n: int, times: int) -> list[list[str]]:
    """Sentences of 8 tokens: words of a Zipf law, each ``times`` times."""
    p = 1 / np.arange(1, 31)
    words = rng.choice(30, (n, 8 // times), p=p / p.sum())
    return [[*map(str, np.repeat(row, times))] for row in words]


def tv_test(first: Encoded, second: Encoded, seed: int = 1) -> float:
    """P-value of the total variation distance."""
    return p_value(compare_words(first, second)["tv"], permuted_words(first, second, draws=99, seed=seed)["tv"])


@pytest.mark.long
def test_sentences_keep_the_size_and_tokens_do_not() -> None:
    """Meister & Cotterell's test with tokens rejects a true null hypothesis when a word recurs in a sentence."""
    rng = np.random.default_rng(7)
    sentences, tokens = [], []
    for i in range(200):
        first, second = encode([repeated(rng, 60, 4), repeated(rng, 60, 4)])
        sentences.append(tv_test(first, second, seed=i) <= 0.05)
        pooled = first.counts() + second.counts()
        dealt = rng.multivariate_hypergeometric(pooled, len(first.tokens), size=99, method="marginals")
        null = 0.5 * np.abs(dealt - (pooled - dealt)).sum(axis=1) / len(first.tokens)
        tokens.append(p_value(compare_words(first, second)["tv"], null) <= 0.05)
    low, high = stats.binom.interval(0.999, 200, 0.05)
    assert low <= sum(sentences) <= high
    assert np.mean(tokens) > 0.5


@pytest.mark.long
def test_a_shifted_law_is_found() -> None:
    rng = np.random.default_rng(8)
    other = [["x", *sentence[1:]] for sentence in repeated(rng, 200, 2)]
    first, second = encode([repeated(rng, 200, 2), other])
    assert tv_test(first, second) == 0.01
