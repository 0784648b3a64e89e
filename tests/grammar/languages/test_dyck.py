"""Dyck-(k, m): string probabilities by the stack, the closed form of the entropy, the bound on the depth."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.generator.sampler import Sampler
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.pcfg import language
from truesource.grammar.support.arrays import random_state


def by_the_stack(sentence: tuple[str, ...], k: int, depth: int) -> float:
    """P of a string by the published process, over P(not empty) = 1/2; 0 where it cannot be generated."""
    stack: list[str] = []
    p = 1.0
    for token in sentence:
        if token.startswith("("):
            if len(stack) == depth:
                return 0.0
            p *= 0.5 / k
            stack.append(token[1:])
        else:
            if not stack or stack[-1] != token[:-1]:
                return 0.0
            p *= 1.0 if len(stack) == depth else 0.5
            stack.pop()
    return p * 0.5 / 0.5 if not stack else 0.0


@pytest.mark.parametrize(("k", "depth"), [(1, 1), (1, 3), (2, 2), (2, 1)])
def test_string_probabilities_are_those_of_the_stack(k: int, depth: int) -> None:
    grammar = language("dyck", k=k, depth=depth)
    words = [f"({i}" for i in range(1, k + 1)] + [f"{i})" for i in range(1, k + 1)]
    strings = [s for n in range(1, 7) for s in itertools.product(words, repeat=n)]
    scores = grammar.exact.string_log_probs(strings)
    for string, score in zip(strings, scores, strict=True):
        expected = by_the_stack(string, k, depth)
        assert (score == -math.inf) if expected == 0.0 else (math.exp(score) == pytest.approx(expected, rel=1e-10))


@given(st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=15, deadline=None)
def test_entropy_is_its_closed_form(k: int, depth: int) -> None:
    """Decisions: ln k for each pair, ln 2 wherever both ways are open.

    One pair begins at depth d for each decision to open there. At depth 0 the expected number of pairs is 2 (geometric
    with 1/2, at least one), and a pair at depth d has on average 1 pair inside (geometric with 1/2), below the maximum.
    After each pair at depth 0, and before each bracket that closes below the maximum and each pair in it, is a choice
    of two.
    """
    grammar = language("dyck", k=k, depth=depth)
    pairs = 2.0 * depth  # two at each depth
    choices = 2.0 + 2.0 * 2.0 * (depth - 1)  # at depth 0: one a pair; in each of 2 pairs of the others: 1 pair, 1 end
    assert derivational_entropy(grammar) == pytest.approx(pairs * math.log(k) + choices * math.log(2.0), rel=1e-10)


def test_counts_of_one_kind_are_those_of_catalan_below_the_depth() -> None:
    grammar = language("dyck", k=1, depth=5)
    for half in range(1, 6):
        strings = list(itertools.product(("(1", "1)"), repeat=2 * half))
        possible = sum(score > -math.inf for score in grammar.exact.string_log_probs(strings))
        assert possible == math.comb(2 * half, half) // (half + 1)


def test_samples_never_exceed_the_depth() -> None:
    sampler = Sampler(language("dyck", k=2, depth=3), None)
    deepest = 0
    for sentence in sampler.sentences(sampler.draw(2000, random_state(1, 2))):
        depth = 0
        for token in sentence:
            depth += 1 if token.startswith("(") else -1
            deepest = max(deepest, depth)
            assert 0 <= depth <= 3
        assert depth == 0
    assert deepest == 3
