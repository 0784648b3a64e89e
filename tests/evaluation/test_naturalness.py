"""Naturalness: laws, lengths and n-grams against known cases and slow, obvious references."""

from __future__ import annotations

import math
import os
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize, stats

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.measures.integer_corpus import (
    Encoded,
    encode,
    expected_types,
    length_counts,
    permuted,
    with_rest,
)
from truesource.evaluation.measures.zipf_law import Law, fit_law, log_pmf, objective
from truesource.evaluation.naturalness.compare import _halves, agreement, compare_naturalness, ngrams
from truesource.evaluation.naturalness.zipf_mandelbrot import (
    MOST_WORDS,
    EstimatedRankFit,
    TrueLaw,
    fit_corpus,
    fit_released,
    ranks_of,
    released_objective,
    score_covariance,
    simulated,
    support,
    true_law,
)
from truesource.evaluation.naturalness.zipf_mandelbrot import expected_types as expected_words
from truesource.grammar.support.errors import InputError

SENTENCES = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=7), min_size=1, max_size=12)
COUNTS = st.lists(st.integers(0, 40), min_size=3, max_size=30)


def law_counts(alpha: float, beta: float, types: int, tokens: int, seed: int) -> np.ndarray:
    """A sample of a known law, by true rank."""
    return np.random.default_rng(seed).multinomial(tokens, np.exp(log_pmf(alpha, beta, types)[1]))


def zipfian(n: int, seed: int, words: int = 400, alpha: float = 1.1) -> list[list[str]]:
    """Sentences of 3 to 9 independent words of a known law."""
    rng = np.random.default_rng(seed)
    p = np.exp(log_pmf(alpha, 2.0, words)[1])
    return [[f"w{w}" for w in rng.choice(words, rng.integers(3, 10), p=p)] for _ in range(n)]


# -- words as integers ------------------------------------------------------------------------------


def test_one_word_has_one_code_in_all_corpora() -> None:
    first, second = encode([[["a", "b"], ["a"]], [["c", "a"]]])
    assert first.tokens.tolist() == [0, 1, 0]
    assert second.tokens.tolist() == [2, 0]
    assert (first.vocabulary, second.vocabulary) == (3, 3)
    assert first.sentence.tolist() == [0, 0, 1]
    assert first.counts(np.array([1])).tolist() == [1, 0, 0]


@pytest.mark.parametrize(("corpus", "what"), [([], "no sentences"), ([["a"], []], "a sentence without words")])
def test_an_empty_corpus_is_refused(corpus: list[list[str]], what: str) -> None:
    with pytest.raises(InputError, match=what):
        encode([corpus])


# -- the law ----------------------------------------------------------------------------------------


@given(st.floats(0.1, 4.0), st.floats(0.01, 50.0), COUNTS)
def test_the_derivatives_are_those_of_the_objective(alpha: float, beta: float, counts: list[int]) -> None:
    assume(sum(counts) > 0)
    share = np.array(counts) / sum(counts)
    value, gradient, hessian = objective(alpha, beta, share)
    by_hand = alpha * sum(s * math.log(r + beta) for r, s in enumerate(share, 1)) + math.log(
        sum((r + beta) ** -alpha for r in range(1, len(share) + 1))
    )
    assert value == pytest.approx(by_hand, rel=1e-10, abs=1e-10)
    step = 1e-5 * min(1.0, beta)
    for i, (da, db) in enumerate(((step, 0.0), (0.0, step))):
        up, down = objective(alpha + da, beta + db, share), objective(alpha - da, beta - db, share)
        assert gradient[i] == pytest.approx((up[0] - down[0]) / (2 * step), rel=1e-4, abs=1e-5)
        assert hessian[i] == pytest.approx((up[1] - down[1]) / (2 * step), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("alpha", "beta"), [(0.7, 0.4), (1.1, 2.7), (1.6, 30.0), (1.0, 0.0)])
def test_exact_frequencies_give_their_law(alpha: float, beta: float) -> None:
    counts = np.rint(1e14 * np.exp(log_pmf(alpha, beta, 2000)[1])).astype(np.int64)
    law = fit_law(counts)
    assert law.alpha == pytest.approx(alpha, abs=1e-6)
    assert law.beta == pytest.approx(beta, abs=1e-4)
    assert law.kl == pytest.approx(0.0, abs=1e-9)
    assert law.tv == pytest.approx(0.0, abs=1e-6)


@pytest.mark.long
@given(st.integers(0, 1000))
def test_the_fit_is_stationary_and_above_a_grid(seed: int) -> None:
    counts = law_counts(1.2, 3.0, 150, 2000, seed)
    law = fit_law(counts)
    share = counts / counts.sum()
    best, gradient, _ = objective(law.alpha, law.beta, share)
    assert abs(gradient[0]) < 1e-8
    assert abs(gradient[1]) < 1e-8 if law.beta > 0 else gradient[1] >= 0
    for alpha in np.linspace(0.3, 3.0, 12):
        for beta in [0.0, *np.geomspace(0.1, 100, 12)]:
            assert best <= objective(float(alpha), float(beta), share)[0] + 1e-12


def test_zipfs_own_law_is_the_root_of_its_equation() -> None:
    counts = law_counts(1.0, 1.5, 300, 5000, 3)
    k = np.arange(1, 301)
    wanted = counts @ np.log(k) / counts.sum()
    root = optimize.brentq(lambda s: (k**-s) @ np.log(k) / (k**-s).sum() - wanted, 0.1, 3.0)
    law = fit_law(counts, pure=True)
    assert law.alpha == pytest.approx(root, abs=1e-9)
    assert law.beta == 0.0
    assert law.kl >= fit_law(counts).kl


def standard_errors(law: Law, ranks: np.ndarray, sentence: np.ndarray) -> np.ndarray:
    """Of alpha and beta, by the sandwich, ranks being known."""
    _, _, hessian = objective(law.alpha, law.beta, np.bincount(ranks - 1, minlength=law.types) / len(ranks))
    inverse = np.linalg.inv(hessian)
    return np.sqrt(np.diag(inverse @ score_covariance(law, ranks, sentence) @ inverse))


@pytest.mark.long
def test_errors_by_known_ranks_are_as_large_as_they_say() -> None:
    """120 samples of one law, tokens independent: 95% intervals hold the truth 88 to 100% of the time."""
    held = np.zeros(2)
    for trial in range(120):
        counts = law_counts(1.2, 3.0, 300, 8000, trial)
        law = fit_law(counts)
        ranks = np.repeat(np.arange(1, 301), counts)
        errors = standard_errors(law, ranks, np.arange(len(ranks)))
        held += np.abs(np.array([law.alpha - 1.2, law.beta - 3.0])) < 1.96 * errors
    assert (held / 120 > 0.88).all()
    assert (held / 120 < 1.0).any()


def test_errors_grow_with_what_a_sentence_repeats() -> None:
    """Every word four times in its sentence is no more than one: the errors are twice as large as of free tokens."""
    ranks = np.repeat(np.arange(1, 201), law_counts(1.2, 3.0, 200, 5000, 1))
    law = fit_law(4 * np.bincount(ranks - 1, minlength=200))
    tokens = np.repeat(ranks, 4)
    free = standard_errors(law, tokens, np.arange(len(tokens)))
    tied = standard_errors(law, tokens, np.repeat(np.arange(len(ranks)), 4))
    assert tied == pytest.approx(2 * free, rel=1e-9)
    information = np.linalg.inv(objective(law.alpha, law.beta, np.bincount(tokens - 1) / len(tokens))[2] * len(tokens))
    assert free == pytest.approx(np.sqrt(np.diag(information)), rel=0.1)


@pytest.mark.parametrize("counts", [[5], [5, 3], [5, 0, 0], [0, 0, 0, 0]])
def test_two_words_are_too_few_for_a_law(counts: list[int]) -> None:
    with pytest.raises(InputError, match="at least 3 different words"):
        fit_law(np.array(counts))


def test_ranks_fall_with_counts_and_equals_are_in_random_order() -> None:
    counts = np.array([1, 5, 0, 1, 9, 1])
    found = {tuple(ranks_of(counts, seed).tolist()) for seed in range(60)}
    assert all((r[4], r[1], r[2]) == (1, 2, 0) for r in found)
    assert len(found) == 6


def test_ranks_come_from_one_half_and_counts_from_the_other() -> None:
    (corpus,) = encode([[["a", "a", "a", "b", "b", "c"], ["c", "c", "b", "new", "b", "c"]]])
    fit = fit_corpus(corpus, np.array([0, 1]))
    assert fit.counts.tolist() == [0, 2, 3]
    assert fit.unranked == pytest.approx(1 / 6)
    assert fit.law.types == 3


@pytest.mark.long
def test_a_corpus_of_a_known_law_gives_it_back() -> None:
    (corpus,) = encode([zipfian(8000, 5)])
    fit = fit_corpus(corpus, permuted(len(corpus), 1))
    assert isinstance(fit.truth, TrueLaw)
    assert fit.parameters == (fit.truth.alpha.value, fit.truth.beta.value)
    assert fit.parameters == pytest.approx((1.1, 2.0), abs=0.1)
    assert fit.law.kl < 0.02  # (K - 1) / 2N = .008 and the errors of the ranks
    assert fit.law == fit_corpus(corpus, permuted(len(corpus), 1)).law


def zipf_sentences(alpha: float, beta: float, words: int, sentences: int, seed: int) -> Encoded:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 20, sentences)
    tokens = rng.choice(words, size=lengths.sum(), p=np.exp(log_pmf(alpha, beta, words)[1]))
    return Encoded(tokens, lengths, words)


@pytest.mark.long
@pytest.mark.parametrize(
    ("law", "words", "sentences", "trials", "share", "uncorrected"),
    [
        ((1.1, 2.7), 400, 1000, 200, (0.91, 0.99), 0.75),
        pytest.param((1.1, 2.7), 3000, 1500, 800, (0.93, 0.97), 0.9, marks=pytest.mark.slow),
        pytest.param((1.3, 8.0), 200, 600, 800, (0.93, 0.97), 0.75, marks=pytest.mark.slow),
    ],
)
def test_intervals_of_laws_of_estimated_ranks_hold(
    law: tuple[float, float],
    words: int,
    sentences: int,
    trials: int,
    share: tuple[float, float],
    uncorrected: float,
) -> None:
    """Those of 95%; ends that are as far from fits to estimated ranks hold less often."""
    held, before = np.zeros(2), np.zeros(2)
    for trial in range(trials):
        fit = fit_corpus(zipf_sentences(*law, words, sentences, trial), np.arange(sentences), seed=1000 + trial)
        assert isinstance(fit.truth, TrueLaw)
        value, low, high = np.array(fit.truth[:2]).T
        held += (low <= law) & (law <= high)
        moved = np.array([fit.law.alpha, fit.law.beta]) - value
        before += (low + moved <= law) & (law <= high + moved)
    assert ((held / trials > share[0]) & (held / trials < share[1])).all()
    assert (before / trials < uncorrected).any()


def test_the_support_is_that_in_which_so_many_types_are_expected() -> None:
    p = np.exp(log_pmf(1.2, 3.0, 500)[1])
    types = math.fsum(1.0 - (1.0 - x) ** 2000 for x in p.tolist())
    assert expected_words(1.2, 3.0, 500, 2000) == pytest.approx(types, rel=1e-12)
    assert support(1.2, 3.0, math.ceil(types), 2000) in range(500, 506)
    assert support(3.0, 0.0, 500, 10) == 500 * MOST_WORDS  # no law of that exponent has so many


def counted(counts: np.ndarray, ranking_tokens: int, sentences: int = 1000) -> EstimatedRankFit:
    """A fit to counts whose tokens are independent."""
    law = fit_law(counts)
    _, gradient, information = objective(law.alpha, law.beta, counts / counts.sum())
    return EstimatedRankFit(law, gradient, information, information / counts.sum(), sentences, ranking_tokens)


def test_a_law_at_its_own_ranks_needs_no_correction() -> None:
    """With so many tokens that no two words change places; its errors are those of maximum likelihood."""
    fit = counted(np.round(1e9 * np.exp(log_pmf(1.5, 2.0, 20)[1])).astype(np.int64), 10**9)
    found = true_law(fit, seed=0)
    assert isinstance(found, TrueLaw)
    assert found.words == 20
    assert (found.alpha.value, found.beta.value) == pytest.approx((1.5, 2.0), abs=1e-4)
    half = stats.t.ppf(0.975, 999) * np.sqrt(np.diag(np.linalg.inv(fit.information)) / 1e9)
    assert found.alpha.high - found.alpha.value == pytest.approx(half[0], rel=0.05)
    assert found.beta.high - found.beta.low == pytest.approx(2 * half[1], rel=0.05)


def test_moments_of_a_sample_by_plain_loops() -> None:
    fit = fit_law(law_counts(1.2, 3.0, 40, 3000, 1))
    p = np.exp(log_pmf(1.0, 1.0, 50)[1])
    (found,) = simulated(np.array([[1.0, math.log(2.0), math.log(50.0)]]), fit, 200, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    counts, ties = rng.multinomial(200, p).tolist(), rng.random(50).tolist()
    words = sorted((w for w in range(50) if counts[w]), key=lambda w: -(counts[w] + ties[w]))
    share = np.array([p[w] for w in words]) / sum(p[w] for w in words)
    _, gradient, _ = objective(fit.alpha, fit.beta, share)
    assert found[:2] == pytest.approx([gradient[0], gradient[1] * (1 + fit.beta)], abs=1e-12)
    assert found[2] == pytest.approx(math.log(len(words) / 40), abs=1e-12)


@pytest.mark.long
def test_an_interval_of_zipfs_own_law_reaches_0() -> None:
    """Most fits have beta at its bound, which takes no interval away; beta is seldom surely below 0."""
    held, found, at_bound = np.zeros(2), 0, 0
    for trial in range(60):
        fit = fit_corpus(zipf_sentences(1.1, 0.0, 100, 400, trial), np.arange(400), seed=trial)
        at_bound += fit.law.beta == 0.0
        if fit.truth == "beta-at-bound":
            continue
        assert isinstance(fit.truth, TrueLaw)
        assert fit.truth.beta.low <= fit.truth.beta.value <= fit.truth.beta.high
        assert fit.truth.alpha.low <= fit.truth.alpha.value <= fit.truth.alpha.high
        ends = np.array(fit.truth[:2])
        held += (ends[:, 1] <= [1.1, 0.0]) & (ends[:, 2] >= [1.1, 0.0])
        found += 1
    assert at_bound > 20
    assert found >= 54
    assert (held / found > 0.9).all()


@pytest.mark.parametrize(
    ("corpus", "why"),
    [
        ((1.1, 2.7, 400, 16), "fewer-than-10-sentences"),
        ((3.0, 1.0, 5000, 100), "not-identified"),
        ((1.0, 1.0, 8, 200), "not-identified"),
    ],
)
def test_a_law_that_a_sample_does_not_determine_has_no_interval(
    corpus: tuple[float, float, int, int], why: str
) -> None:
    fit = fit_corpus(zipf_sentences(*corpus, 1), np.arange(corpus[-1]))
    assert fit.truth == why
    assert fit.parameters == (fit.law.alpha, fit.law.beta)


def test_what_is_no_power_law_has_no_interval_and_the_signature_says_why() -> None:
    sentences = [[f"w{k}"] * 2 for k in range(12) for _ in range(2**k)]  # geometric: alpha and beta without bound
    row = compare_naturalness({"bank": sentences, "same": sentences}, "bank").scores["same"]["zipf_alpha"]
    assert row.low is None
    assert "|ci:none/no-power-law|" in row.signature


def test_one_sentence_has_no_halves() -> None:
    (corpus,) = encode([[["a", "b", "c"]]])
    with pytest.raises(InputError, match="2 or more are needed, got 1"):
        fit_corpus(corpus, np.array([0]))


def test_the_published_objective_by_its_formula() -> None:
    ranks, weights = np.array([0.0, 1.0, 4.0]), np.log([9.0, 4.0, 2.0])
    zeta = sum((k + 1.5) ** -2.5 for k in range(1, 200_000))
    wanted = sum(w * (-2.5 * math.log10(r + 1.5) - math.log10(zeta)) for r, w in zip(ranks, weights, strict=True))
    assert released_objective(2.5, 1.5, ranks, weights) == pytest.approx(wanted - 1.5**5, abs=1e-6)


def test_the_published_fit_is_a_local_maximum_of_the_published_objective() -> None:
    (corpus,) = encode([zipfian(3000, 2)])
    rows = permuted(len(corpus), 0)
    fit = fit_released(corpus, rows)
    counts, counted = corpus.counts(rows[:1500]), corpus.counts(rows[1500:])
    used = (counts > 0) & (counted > 1)
    assert fit.types == used.sum()
    at, weights = ranks_of(counts, 0)[used] - 1.0, np.log(counted[used])
    best = released_objective(fit.alpha, fit.beta, at, weights)
    for da, db in ((1e-3, 0), (-1e-3, 0), (0, 1e-3), (0, -1e-3), (5e-3, 2e-2), (-5e-3, -2e-2)):
        assert best > released_objective(fit.alpha + da, fit.beta + db, at, weights)


def test_the_published_fit_needs_words_that_recur() -> None:
    (corpus,) = encode([[["a", "b"], ["a", "a"]]])
    with pytest.raises(InputError, match="needs 3 words"):
        fit_released(corpus, np.array([0, 1]))


# -- lengths ----------------------------------------------------------------------------------------


def test_lengths_are_counted_and_what_is_longer_stands_last() -> None:
    assert length_counts(np.array([1, 2, 2, 5, 9]), 3).tolist() == [0, 1, 2, 0, 2]
    assert with_rest(np.array([0.0, 0.5, 0.25])).tolist() == [0.0, 0.5, 0.25, 0.25]


# -- n-grams ----------------------------------------------------------------------------------------


def slow_ngrams(sentences: list[list[str]], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(s[i : i + n]) for s in sentences for i in range(len(s) - n + 1))


@pytest.mark.long
@given(SENTENCES, SENTENCES, st.randoms(use_true_random=False))
def test_ngrams_by_a_counter(first: list[list[str]], second: list[list[str]], random: object) -> None:
    corpora = encode([first, second])
    rows = sorted(random.sample(range(len(first)), random.randint(1, len(first))))  # type: ignore[attr-defined]
    for table in ngrams(corpora):
        ours = table.counts(0, np.array(rows))
        theirs = table.counts(1, np.arange(len(second)))
        a, b = slow_ngrams([first[i] for i in rows], table.n), slow_ngrams(second, table.n)
        assert sorted(ours[ours > 0].tolist()) == sorted(a.values())
        assert table.types == len({*slow_ngrams(first, table.n), *b})
        both = (ours > 0) & (theirs > 0)
        assert sorted(zip(ours[both].tolist(), theirs[both].tolist(), strict=True)) == sorted(
            (a[g], b[g]) for g in a.keys() & b.keys()
        )
        for variant in ("default", "paper"):
            found = agreement(ours, theirs, variant)  # type: ignore[arg-type]
            if not a or not b:
                assert found is None
                continue
            assert found is not None
            assert found.shared_types == pytest.approx(len(a.keys() & b.keys()) / len(a))
            assert found.shared_tokens == pytest.approx(sum(a[g] for g in a if g in b) / a.total())
            assert found.covered_types == pytest.approx(len(a.keys() & b.keys()) / len(b))
            assert found.covered_tokens == pytest.approx(sum(b[g] for g in b if g in a) / b.total())
            types = list(b if variant == "paper" else a.keys() | b.keys())
            x, y = [a[g] for g in types], [b[g] for g in types]
            if len(set(x)) > 1 and len(set(y)) > 1:
                assert found.spearman == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


def test_no_ngram_crosses_the_end_of_a_sentence() -> None:
    tables = list(ngrams(encode([[["a", "b"], ["c"], ["a", "b", "c"]]])))
    assert [table.types for table in tables] == [3, 2, 1, 0]
    assert tables[1].counts(0, np.arange(3)).tolist() == [2, 1]
    assert tables[3].counts(0, np.arange(3)).tolist() == []


@pytest.mark.long
@given(SENTENCES)
def test_a_corpus_agrees_with_itself(sentences: list[list[str]]) -> None:
    rows = np.arange(len(sentences))
    for table in ngrams(encode([sentences, sentences])):
        for variant in ("default", "paper"):
            found = agreement(table.counts(0, rows), table.counts(1, rows), variant)  # type: ignore[arg-type]
            if found is not None:
                assert set(vars(found).values()) == {1.0}


# -- types ------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.integers(0, 8))
def test_expected_types_by_enumeration(counts: list[int], tokens: int) -> None:
    urn = [word for word, n in enumerate(counts) for _ in range(n)]
    assume(tokens <= len(urn))
    draws = list(combinations(range(len(urn)), tokens))
    wanted = sum(len({urn[i] for i in draw}) for draw in draws) / len(draws)
    assert expected_types(np.array(counts), tokens) == pytest.approx(wanted, abs=1e-9)


# -- side by side -----------------------------------------------------------------------------------


def test_a_source_beside_itself() -> None:
    bank = zipfian(300, 1)
    found = compare_naturalness({"bank": bank, "same": list(bank)}, "bank")
    same, halves = found.scores["same"], found.scores["bank"]
    assert same["length_tv"].value == 0.0
    assert same["length_tv_p"].value == 1.0
    for n in range(1, 5):
        for what in ("spearman", "shared_types", "shared_tokens", "covered_types", "covered_tokens"):
            assert same[f"ngram_{what}_{n}"].value == 1.0
        assert halves[f"ngram_spearman_{n}"].value < 1.0
    for name in ("mean_length", "type_token_ratio", "zipf_alpha", "zipf_beta", "zipf_alpha_paper"):
        assert same[name].value == halves[name].value
        assert "data:" in same[name].signature
    assert halves["mean_length"].value == pytest.approx(np.mean([len(s) for s in bank]))


@pytest.mark.long
def test_one_seed_gives_one_table_and_another_another() -> None:
    sources = {"bank": zipfian(200, 1), "other": zipfian(150, 2)}
    assert compare_naturalness(sources, "bank").records() == compare_naturalness(sources, "bank").records()
    assert compare_naturalness(sources, "bank").records() != compare_naturalness(sources, "bank", seed=2).records()


@pytest.mark.long
def test_sizes_are_equal_and_said() -> None:
    found = compare_naturalness({"bank": zipfian(200, 1), "small": zipfian(60, 2), "big": zipfian(900, 3)}, "bank")
    for row in found.scores.values():
        assert "sentences:60+60" in row["ngram_spearman_2"].signature
        assert "sentences:30+30" in row["zipf_alpha"].signature
    tokens = {row["type_token_ratio"].signature.split("|")[0] for row in found.scores.values()}
    assert len(tokens) == 1
    ratios = [row["type_token_ratio"].value for row in found.scores.values()]
    assert max(ratios) - min(ratios) < 0.05  # one law, whatever the size


@pytest.mark.long
def test_the_law_tells_an_equal_source_from_another() -> None:
    found = compare_naturalness(
        {
            "bank": zipfian(1000, 1),
            "equal": zipfian(1000, 2),
            "flat": zipfian(1000, 3, alpha=0.3),
            "steep": zipfian(1000, 4, alpha=1.6),
        },
        "bank",
        seed=0,  # with some other seeds, the law of "flat" is just identified
    )
    rho = {name: row["ngram_spearman_1"].value for name, row in found.scores.items()}
    assert rho["equal"] == pytest.approx(rho["bank"], abs=0.05)
    assert rho["flat"] < rho["bank"] - 0.1
    alpha = {name: row["zipf_alpha"] for name, row in found.scores.items()}
    assert alpha["flat"].value < alpha["bank"].value
    assert "|ci:none/not-identified|" in alpha["flat"].signature  # beta may be any number
    assert alpha["steep"].low is not None and alpha["bank"].high is not None
    assert alpha["steep"].low > alpha["bank"].high


@pytest.mark.long
def test_exact_lengths_stand_beside_the_reference() -> None:
    bank, other = zipfian(300, 1), zipfian(300, 2)
    uniform = np.array([0.0] * 3 + [1 / 7] * 7)  # 3 to 9 words
    found = compare_naturalness({"bank": bank, "other": other}, "bank", exact={"other": uniform})
    counts = np.bincount([len(s) for s in bank], minlength=10)
    row = found.scores["other"]
    assert row["length_tv_exact"].value == pytest.approx(0.5 * np.abs(counts / 300 - uniform).sum())
    assert row["length_tv_p_exact"].value > 0.01
    with pytest.raises(InputError, match="end before the longest sentence"):
        compare_naturalness({"bank": bank, "other": other}, "bank", exact={"other": uniform[:8]})


def test_halves_by_document_share_no_document() -> None:
    documents = [d for d in range(9) for _ in range(1 + d % 4)]
    for split in range(5):
        first, second = _halves(len(documents), documents, 3, split)
        assert sorted([*first.tolist(), *second.tolist()]) == list(range(len(documents)))
        of_first, of_second = ({documents[i] for i in half} for half in (first, second))
        assert not of_first & of_second
        assert abs(len(first) - len(second)) <= 4  # the largest document


@pytest.mark.long
def test_the_ceiling_of_halves_by_document_is_lower_where_documents_have_words_of_their_own() -> None:
    """Documents of their own words: halves of the sentences share these, halves of the documents do not."""
    rng = np.random.default_rng(3)
    documents = [d for d in range(20) for _ in range(15)]
    text = [
        [f"w{d}-{w}" for w in rng.integers(0, 12, 4)] + [f"all{w}" for w in rng.integers(0, 9, 3)] for d in documents
    ]
    sources = {"bank": text, "other": text[::-1]}
    cut, whole = (compare_naturalness(sources, "bank", seed=2, documents=of) for of in (None, documents))
    name = "ngram_shared_tokens_1"
    assert whole.scores["bank"][name].value < cut.scores["bank"][name].value - 0.3
    assert whole.scores["bank"][name].value == pytest.approx(3 / 7, abs=0.02)  # the words of all documents
    parts = parts_of(whole.scores["bank"][name].signature)
    assert (parts["documents"], "documents" in parts_of(cut.scores["bank"][name].signature)) == ("20", False)
    one = compare_naturalness(sources, "bank", seed=2, documents=[0] * len(text))
    assert one.scores["bank"][name] == cut.scores["bank"][name]


@pytest.mark.long
def test_no_common_word_is_no_agreement() -> None:
    bank = zipfian(100, 1)
    strange = [[word.upper() for word in sentence] for sentence in bank]
    row = compare_naturalness({"bank": bank, "strange": strange}, "bank").scores["strange"]
    for n in range(1, 5):
        assert row[f"ngram_shared_tokens_{n}"].value == row[f"ngram_covered_types_{n}"].value == 0.0
        assert row[f"ngram_spearman_{n}"].value < 0.0
    paper = compare_naturalness({"bank": bank, "strange": strange}, "bank", variant="paper").scores["strange"]
    assert paper["ngram_spearman_1"].value == 0.0  # all zeros over the reference's types
    assert "types:reference" in paper["ngram_spearman_1"].signature


def test_sentences_too_short_for_an_ngram_have_no_row() -> None:
    one = [[word] for sentence in zipfian(200, 1) for word in sentence]
    row = compare_naturalness({"bank": one, "other": one[::-1]}, "bank").scores["other"]
    assert "ngram_spearman_1" in row
    assert "ngram_spearman_2" not in row


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ([], "'other' needs 2 sentences or more, got 0"),
        ([["a", "b", "c"]], "'other' needs 2 sentences or more, got 1"),
        ([["a", "a"]] * 50, "other: a Zipf-Mandelbrot law needs at least 3 different words"),
        ([["a"], []], "a sentence without words"),
    ],
)
def test_bad_sources_are_refused(other: list[list[str]], what: str) -> None:
    with pytest.raises(InputError, match=what):
        compare_naturalness({"bank": zipfian(50, 1), "other": other}, "bank")


def test_the_reference_is_one_of_the_sources_and_not_the_only_one() -> None:
    bank = zipfian(50, 1)
    for sources, reference in (({"bank": bank}, "bank"), ({"bank": bank, "other": bank}, "treebank")):
        with pytest.raises(InputError, match="at least one other source"):
            compare_naturalness(sources, reference)


# -- a treebank -------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.skipif("TRUESOURCE_SHARED_DATA" not in os.environ, reason="TRUESOURCE_SHARED_DATA is not set")
def test_a_treebank_is_more_like_itself_than_its_shuffled_words() -> None:
    from truesource.grammar.treebank import Treebank

    folder = Path(os.environ["TRUESOURCE_SHARED_DATA"])
    bank = Treebank.read(folder / "gum.dev.mrg.gz").sentences()
    test = Treebank.read(folder / "gum.test.mrg.gz").sentences()
    words = [word for sentence in test for word in sentence]
    shuffled = [words[i] for i in np.random.default_rng(1).permutation(len(words))]
    ends = np.cumsum([0, *map(len, test)])
    mixed = [shuffled[a:b] for a, b in pairwise(ends.tolist())]
    found = compare_naturalness({"dev": bank, "test": test, "mixed": mixed}, "dev")
    rows = found.scores
    assert 1.0 < rows["dev"]["zipf_alpha"].value < 1.25
    assert rows["test"]["ngram_spearman_1"].value == pytest.approx(rows["mixed"]["ngram_spearman_1"].value, abs=0.03)
    for n in (2, 3):
        assert rows["mixed"][f"ngram_shared_tokens_{n}"].value < 0.6 * rows["test"][f"ngram_shared_tokens_{n}"].value
        assert rows["test"][f"ngram_spearman_{n}"].value <= rows["dev"][f"ngram_spearman_{n}"].value
