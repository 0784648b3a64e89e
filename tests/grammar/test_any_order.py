"""Words at gaps given any others, against enumeration, and the chain rule over every order."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from random_grammars import cases
from reference_inference import all_strings, rules_of
from scipy.stats import chisquare

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.any_order import AnyOrder, Pattern
from truesource.grammar.inference.windows import with_any_word
from truesource.grammar.languages import hmm, ngram
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

pytestmark = pytest.mark.long

Case = tuple[PCFG, list[list[str]]]
BRANCHING = PCFG.from_text("S -> S S 0.3 | A B 0.2 | 'a' 0.3 | 'b' 0.2\nA -> 'a' 0.6 | 'c' 0.4\nB -> 'b' 0.5 | 'c' 0.5")


def fitting(pcfg: PCFG, pattern: Pattern) -> dict[tuple[str, ...], float]:
    """All sentences that fit, with their probabilities, by enumeration."""
    rules = rules_of(pcfg)
    strings = all_strings(rules, len(pattern))[rules.start][len(pattern)]
    return {s: p for s, p in strings.items() if all(w in (None, x) for w, x in zip(pattern, s, strict=True))}


@settings(max_examples=40)
@given(cases(max_size=4, max_symbols=4))
def test_all_patterns_of_a_sentence_are_those_of_enumeration(case: Case) -> None:
    pcfg, (sentence,) = case
    assume(math.isfinite(pcfg.log_prob(sentence)))
    truth = AnyOrder(pcfg)
    shown = itertools.product((True, False), repeat=len(sentence))
    patterns: list[Pattern] = [[w if s else None for w, s in zip(sentence, each, strict=True)] for each in shown]
    totals, tables = truth.log_probs(patterns), truth.marginals(patterns)
    for pattern, total, table in zip(patterns, totals, tables, strict=True):
        strings = fitting(pcfg, pattern)
        mass = math.fsum(strings.values())
        assert total == pytest.approx(math.log(mass), abs=1e-10)
        wanted = np.zeros_like(table)
        for string, p in strings.items():
            wanted[np.arange(len(string)), pcfg.encode(string)] += p / mass
        np.testing.assert_allclose(table, wanted, rtol=0.0, atol=1e-11)
    numbers = np.array([[-1 if w is None else pcfg.word_ids[w] for w in pattern] for pattern in patterns])
    np.testing.assert_allclose(truth.denoise(numbers), tables, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("name", ["english", "dyck"])
def test_every_order_gives_the_probability_of_the_sentence(name: str) -> None:
    """Word by word, in any order: the sum of ln P(word | those known so far) is ln P(sentence | its length)."""
    pcfg = language(name, size="small") if name == "english" else language(name)
    sentence = ["there", "is", "a", "rich", "girl", "."] if name == "english" else ["(1", "(2", "2)", "1)", "(1", "1)"]
    truth, rng = AnyOrder(pcfg), np.random.default_rng(1)
    whole = pcfg.log_prob(sentence) - math.log(pcfg.exact.length_pmf(len(sentence))[-1])
    for _ in range(10):
        order = rng.permutation(len(sentence))
        patterns: list[Pattern] = []
        for step in range(len(order)):
            known = set(order[:step].tolist())
            patterns.append([word if i in known else None for i, word in enumerate(sentence)])
        tables = truth.marginals(patterns)
        total = sum(
            math.log(table[at, pcfg.word_ids[sentence[at]]]) for table, at in zip(tables, order.tolist(), strict=True)
        )
        assert total == pytest.approx(whole, abs=1e-9)


def test_one_gap_is_a_masked_word() -> None:
    sentence = ["a", "b", "a", "b"]
    patterns: list[Pattern] = [[None if i == j else w for i, w in enumerate(sentence)] for j in range(4)]
    for j, table in enumerate(AnyOrder(BRANCHING).marginals(patterns)):
        np.testing.assert_allclose(table[j], BRANCHING.masked(sentence, j), rtol=0.0, atol=1e-12)
        assert table[(j + 1) % 4].max() == 1.0


@settings(max_examples=25)
@given(cases(max_size=6))
def test_one_gap_is_the_masked_score_and_a_beginning_the_causal_one_of_that_length(case: Case) -> None:
    """Both of code that knows nothing of gaps: `masked_log_probs`, and causal scores of lengths n..n."""
    pcfg, (sentence,) = case
    assume(math.isfinite(pcfg.log_prob(sentence)))
    n, truth, numbers = len(sentence), AnyOrder(pcfg), pcfg.encode(sentence)
    one: list[Pattern] = [[None if i == j else w for i, w in enumerate(sentence)] for j in range(n)]
    begun: list[Pattern] = [[*sentence[:j], *[None] * (n - j)] for j in range(n)]
    tables = truth.marginals([*one, *begun])
    own = np.log([table[j % n, numbers[j % n]] for j, table in enumerate(tables)])
    np.testing.assert_allclose(own[:n], pcfg.exact.masked_log_probs([sentence])[0], rtol=0.0, atol=1e-10)
    causal = pcfg.exact.causal_log_probs([sentence], LengthRange(n, n))[0]
    np.testing.assert_allclose(own[n:], causal[:n], rtol=0.0, atol=1e-10)
    assert causal[n] == pytest.approx(0.0, abs=1e-10)


def forward_backward(first: FloatArray, move: FloatArray, emit: FloatArray, known: list[int | None]) -> FloatArray:
    """P(word at each place | known words) of a hidden Markov model, (n, V)."""
    fit = np.array([emit.sum(axis=1) if word is None else emit[:, word] for word in known])
    ahead, back = [first], [np.ones(len(first))]
    for weights in fit[:-1]:
        ahead.append((ahead[-1] * weights) @ move)
    for weights in fit[:0:-1]:
        back.append(move @ (weights * back[-1]))
    states = np.array(ahead) * np.array(back[::-1])
    shown = np.array([emit if word is None else emit * np.eye(emit.shape[1])[word] for word in known])
    words = np.einsum("ns,nsv->nv", states, shown)
    return np.asarray(words / words.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("name", ["ngram", "hmm"])
def test_a_markov_chain_is_filled_by_forward_and_backward(name: str) -> None:
    if name == "ngram":
        pcfg, table = (
            language(name, order=2, vocabulary=6),
            ngram.tables(ngram.RandomNgramSettings(order=2, vocabulary=6)),
        )
        first, move, emit = table[0], table[1:], np.eye(6)
    else:
        pcfg = language(name, states=4, vocabulary=6)
        first, move, emit = hmm.parameters(hmm.HmmSettings(states=4, vocabulary=6))
    rng = np.random.default_rng(3)
    numbers = rng.integers(6, size=(30, 12))
    ids = np.where(rng.random(numbers.shape) < rng.random((30, 1)), numbers, -1)
    truth = AnyOrder(pcfg)
    for row, table in zip(ids.tolist(), truth.denoise(ids), strict=True):
        wanted = forward_backward(first, move, emit, [None if word < 0 else word for word in row])
        np.testing.assert_allclose(table, wanted, rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("p", [1e-30, 1e-200, 1e-300])
def test_words_of_tiny_probability_do_not_leave_the_range_of_floats(p: float) -> None:
    pcfg = PCFG.from_text(f"S -> S S 0.5 | A B 0.5\nA -> 'b' {p} | 'a' 1.0\nB -> 'b' 0.5 | 'x' 0.2 | 'y' 0.3")
    truth = AnyOrder(pcfg)
    logs, (table, other) = truth.answers([["b", None], ["a", None]])
    assert logs == pytest.approx([math.log(0.5) + math.log(p), math.log(0.5)], abs=1e-10)
    for words in (table[1], other[1]):
        assert words[[pcfg.word_ids[w] for w in ("a", "b", "x", "y")]] == pytest.approx([0.0, 0.5, 0.2, 0.3], abs=1e-12)


def test_long_patterns_do_not_leave_the_range_of_floats() -> None:
    """Against whole sentences with a word that stands for any; more than 62 places need two numbers of bits."""
    rng, n = np.random.default_rng(7), 260
    known = rng.choice(["a", "b", "c"], n).tolist()
    pattern: Pattern = [None if rng.random() < 0.5 else word for word in known]
    hiding, truth = with_any_word(BRANCHING), AnyOrder(BRANCHING)
    shown = [hiding.vocabulary[-1] if word is None else word for word in pattern]
    logs, (table,) = truth.answers([pattern])
    assert logs[0] == pytest.approx(hiding.log_prob(shown) + n * math.log(2.0), rel=1e-12)
    for at in (pattern.index(None), n - 1 - pattern[::-1].index(None)):
        np.testing.assert_allclose(table[at], 2.0 * hiding.masked(shown, at)[:3], rtol=0.0, atol=1e-10)


def test_weights_that_no_scale_brings_near_1_warn_of_nothing() -> None:
    pcfg = PCFG.from_text("S -> U 1 | U S 4e-226 | a 5e-67 | b 2e-282\nU -> S 3e-4 | a 0.9997")
    sentences = [["b", "b"], ["a", "a"], ["b", "a"]]
    np.testing.assert_allclose(AnyOrder(pcfg).log_probs(sentences), pcfg.exact.string_log_probs(sentences), rtol=1e-12)
    (row,) = AnyOrder(pcfg).marginals([["b", None]])
    np.testing.assert_allclose(row[1].sum(), 1.0, rtol=1e-12)


def test_the_best_fillings_come_in_order_and_are_all_there() -> None:
    pattern = [None, "b", None, None]
    strings = fitting(BRANCHING, pattern)
    mass = math.fsum(strings.values())
    found = list(AnyOrder(BRANCHING).best(pattern))
    assert {each.words for each in found} == set(strings)
    assert [each.log_prob for each in found] == sorted((each.log_prob for each in found), reverse=True)
    for each in found:
        assert each.log_prob == pytest.approx(math.log(strings[each.words] / mass), abs=1e-10)


def test_samples_follow_the_exact_distribution() -> None:
    pattern = ["a", None, None]
    strings = fitting(BRANCHING, pattern)
    drawn = AnyOrder(BRANCHING).sample(pattern, 4000, np.random.default_rng(5))
    counts = np.array([drawn.count(string) for string in strings])
    expected = np.array(list(strings.values())) / math.fsum(strings.values()) * len(drawn)
    assert counts.sum() == len(drawn) and expected.min() > 5.0
    assert chisquare(counts, expected).pvalue > 0.001


def test_total_correlation_is_that_of_the_joint() -> None:
    """Two brackets say all of each other; independent words nothing."""
    pair = PCFG.from_text("S -> A X 0.5 | B Y 0.5\nA -> 'a' 1.0\nB -> 'b' 1.0\nX -> 'x' 1.0\nY -> 'y' 1.0")
    free = PCFG.from_text("S -> A B 1.0\nA -> 'a' 0.3 | 'b' 0.7\nB -> 'x' 0.5 | 'y' 0.5")
    assert AnyOrder(pair).total_correlation([[None, None], ["a", None]]) == pytest.approx([math.log(2.0), 0.0])
    assert AnyOrder(free).total_correlation([[None, None]]) == pytest.approx([0.0], abs=1e-12)


def test_what_does_not_fit_is_refused_in_one_sentence() -> None:
    truth = AnyOrder(BRANCHING)
    for call in (lambda: list(truth.best(["x", None])), lambda: truth.sample(["x"], 1, np.random.default_rng(0))):
        with pytest.raises(InputError, match="no sentence of the grammar matches"):
            call()
    with pytest.raises(InputError, match="pattern 2 is empty"):
        truth.log_probs([["a"], []])
    for ids in (np.zeros((2, 0), dtype=np.int64), np.zeros(3, dtype=np.int64)):
        with pytest.raises(InputError, match="a position or more"):
            truth.denoise(ids)
    for ids in (np.array([[-2, 0]]), np.array([[0, 3]])):
        with pytest.raises(InputError, match=r"a word number is outside the range from -1 \(unknown\) to 2"):
            truth.denoise(ids)
    assert truth.denoise(np.zeros((0, 3), dtype=np.int64)).shape == (0, 3, 3)
    assert not truth.marginals([["x", None]])[0].any() and truth.log_probs([["x", None]])[0] == -math.inf
