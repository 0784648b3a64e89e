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

from truesource.grammar.inference.any_order import AnyOrder, Pattern
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.errors import InputError

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
        with pytest.raises(InputError, match="no sentence of the grammar fits"):
            call()
    with pytest.raises(InputError, match="pattern 2 is empty"):
        truth.log_probs([["a"], []])
    for ids in (np.zeros((2, 0), dtype=np.int64), np.zeros(3, dtype=np.int64)):
        with pytest.raises(InputError, match="one place or more"):
            truth.denoise(ids)
    for ids in (np.array([[-2, 0]]), np.array([[0, 3]])):
        with pytest.raises(InputError, match="outside -1"):
            truth.denoise(ids)
    assert truth.denoise(np.zeros((0, 3), dtype=np.int64)).shape == (0, 3, 3)
    assert not truth.marginals([["x", None]])[0].any() and truth.log_probs([["x", None]])[0] == -math.inf
