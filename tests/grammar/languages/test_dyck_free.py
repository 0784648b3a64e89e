"""Dyck languages of any depth: string probabilities, the law of the length, mean and entropy in closed form."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.pcfg import language
from truesource.grammar.support.errors import InputError


def nested_pairs(sentence: tuple[str, ...]) -> int | None:
    """Number of pairs; None where a bracket closes another or none, or stays open."""
    stack: list[str] = []
    for token in sentence:
        if token.startswith("("):
            stack.append(token[1:])
        elif not stack or stack.pop() != token[:-1]:
            return None
    return None if stack else len(sentence) // 2


@pytest.mark.parametrize(("k", "p", "longest"), [(1, 0.3, 10), (2, 0.45, 6), (3, 0.2, 4)])
def test_string_probabilities_are_those_of_the_process(k: int, p: float, longest: int) -> None:
    """Each pair costs p/k; the string may end at one place more than it has pairs; the empty string has 1-p."""
    grammar = language("dyck-free", k=k, p=p)
    words = [f"({i}" for i in range(1, k + 1)] + [f"{i})" for i in range(1, k + 1)]
    strings = [s for n in range(1, longest + 1) for s in itertools.product(words, repeat=n)]
    for string, score in zip(strings, grammar.exact.string_log_probs(strings), strict=True):
        pairs = nested_pairs(string)
        if pairs is None:
            assert score == -math.inf
        else:
            assert math.exp(score) == pytest.approx((p / k) ** pairs * (1 - p) ** (pairs + 1) / p, rel=1e-10)


probabilities = st.floats(0.01, 0.49)


@pytest.mark.long
@given(st.integers(1, 5), probabilities)
def test_mean_length_with_and_without_the_empty_string(k: int, p: float) -> None:
    mean = language("dyck-free", k=k, p=p).exact.mean_length
    assert mean == pytest.approx(2 / (1 - 2 * p), rel=1e-10)
    assert p * mean + (1 - p) * 0 == pytest.approx(2 * p / (1 - 2 * p), rel=1e-10)


@pytest.mark.long
@given(st.integers(1, 5), probabilities)
def test_entropy_is_its_closed_form(k: int, p: float) -> None:
    """With the empty string: 1/(1-2p) places, at each of which a pair opens (of k kinds) or not."""
    choice = -p * math.log(p) - (1 - p) * math.log(1 - p)
    with_empty = (choice + p * math.log(k)) / (1 - 2 * p)
    entropy = derivational_entropy(language("dyck-free", k=k, p=p))
    assert entropy == pytest.approx((with_empty - choice) / p, rel=1e-10)


@pytest.mark.long
@given(st.integers(1, 5), probabilities)
def test_lengths_follow_catalan_numbers(k: int, p: float) -> None:
    expected = np.zeros(31)
    for n in range(1, 16):
        expected[2 * n] = math.comb(2 * n, n) / (n + 1) * p**n * (1 - p) ** (n + 1) / p
    assert language("dyck-free", k=k, p=p).exact.length_pmf(30) == pytest.approx(expected, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("p", ["0.5", "0.4999999", "0.9"])
def test_an_infinite_mean_is_refused(p: str) -> None:
    with pytest.raises(InputError, match=r"infinite from p = 1/2 on; choose at most 0\.499999") as caught:
        language(f"dyck-free:p={p}")
    assert caught.value.code == "bad-setting"
    assert language("dyck-free:p=0.499999").exact.mean_length == pytest.approx(1e6, rel=1e-3)
