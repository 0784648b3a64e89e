"""a^n b^n, w w^R, and as many a as b: members by enumeration, probabilities in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.languages.balanced import away
from truesource.grammar.pcfg import PCFG, language

pytestmark = pytest.mark.long

MEAN_LENGTH = st.floats(2.1, 200.0)
Strings = Iterator[tuple[tuple[str, ...], float]]


def expect(grammar: PCFG, expected: Strings) -> None:
    """Compare the probability of each string with the closed form."""
    texts, values = zip(*expected, strict=True)
    for text, value, score in zip(texts, values, grammar.exact.string_log_probs(texts), strict=True):
        assert math.exp(score) == pytest.approx(value, rel=1e-10, abs=0.0), text


@pytest.mark.long
@given(MEAN_LENGTH)
@settings(max_examples=15, deadline=None)
def test_anbn(mean_length: float) -> None:
    grammar, p = language("anbn", mean_length=mean_length), 1.0 - 2.0 / mean_length

    def strings() -> Strings:
        for n in range(1, 8):
            for text in itertools.product("ab", repeat=n):
                half = n // 2
                member = n % 2 == 0 and text == ("a",) * half + ("b",) * half
                yield text, (1.0 - p) * p ** (half - 1) if member else 0.0

    expect(grammar, strings())
    assert grammar.exact.mean_length == pytest.approx(mean_length, rel=1e-10)
    entropy = -math.log(1.0 - p) - p / (1.0 - p) * math.log(p)
    assert derivational_entropy(grammar) == pytest.approx(entropy, rel=1e-10)


@given(st.integers(1, 3), MEAN_LENGTH, st.booleans())
@settings(max_examples=15, deadline=None)
def test_palindrome(k: int, mean_length: float, marked: bool) -> None:
    grammar, p = language("palindrome", k=k, mean_length=mean_length, marked=marked), 1.0 - 2.0 / mean_length
    words = [f"w{i}" for i in range(1, k + 1)] + ["#"] * marked

    def strings() -> Strings:
        for n in range(1, 7):
            for text in itertools.product(words, repeat=n):
                half = n // 2
                middle = () if n % 2 == 0 else ("#",)
                member = (n % 2 == 1) == marked and half > 0 and "#" not in text[:half]
                member = member and text == text[:half] + middle + text[:half][::-1]
                yield text, (1.0 - p) * p ** (half - 1) / k**half if member else 0.0

    expect(grammar, strings())
    assert grammar.exact.mean_length == pytest.approx(mean_length + marked, rel=1e-10)
    entropy = -math.log(1.0 - p) - p / (1.0 - p) * math.log(p) + math.log(k) / (1.0 - p)
    assert derivational_entropy(grammar) == pytest.approx(entropy, rel=1e-10)


@given(MEAN_LENGTH)
@settings(max_examples=15, deadline=None)
def test_balanced(mean_length: float) -> None:
    grammar, p = language("balanced", mean_length=mean_length), away(mean_length)
    assert 2.0 * (1.0 - p) / (1.0 - 2.0 * p) ** 2 == pytest.approx(mean_length, rel=1e-10)

    def strings() -> Strings:
        for n in range(1, 9):
            for text in itertools.product("ab", repeat=n):
                member = text.count("a") == text.count("b")
                yield text, (1.0 - 2.0 * p) / (2.0 * p) * (p * (1.0 - p)) ** (n // 2) if member else 0.0

    expect(grammar, strings())
    assert grammar.exact.mean_length == pytest.approx(mean_length, rel=1e-10)
    entropy = -math.log((1.0 - 2.0 * p) / (2.0 * p)) - mean_length / 2.0 * math.log(p * (1.0 - p))
    assert derivational_entropy(grammar) == pytest.approx(entropy, rel=1e-10), "unambiguous: that of the strings"
