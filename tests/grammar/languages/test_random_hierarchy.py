"""The random hierarchy model: lengths, entropy, one derivation a string, productions that no two symbols share."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_inference import all_strings, rules_of
from scipy import stats

from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.errors import InputError

seeds = st.integers(0, 2**32 - 1)


def strings(grammar: PCFG, tokens: int) -> dict[tuple[str, ...], float]:
    """Every string of the language with its probability; all must have so many tokens."""
    by_length = all_strings(rules_of(grammar), tokens)["S"]
    assert not any(by_length[:tokens])
    return by_length[tokens]


@pytest.mark.long
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5), st.integers(2, 3), seeds)
def test_length_and_entropy_are_their_closed_forms(depth: int, v: int, m: int, s: int, seed: int) -> None:
    m = min(m, v ** (s - 1))
    grammar = language("random-hierarchy", depth=depth, symbols=v, productions=m, children=s, seed=seed)
    tokens = s**depth
    pmf = grammar.exact.length_pmf(tokens + 1)
    assert pmf == pytest.approx(np.eye(tokens + 2)[tokens], abs=1e-10)
    expected = math.log(v) + math.log(m) * (tokens - 1) / (s - 1)
    assert derivational_entropy(grammar) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert grammar.exact.reached.all()


@pytest.mark.parametrize(
    ("depth", "v", "m", "s", "seed"),
    [(2, 2, 2, 2, 1), (2, 3, 2, 2, 2), (2, 4, 2, 2, 3), (1, 3, 9, 3, 4), (3, 4, 1, 2, 5)],
)
def test_every_string_has_one_derivation(depth: int, v: int, m: int, s: int, seed: int) -> None:
    """All v m^((s^L-1)/(s-1)) derivations are equally probable: as many strings as derivations."""
    grammar = language("random-hierarchy", depth=depth, symbols=v, productions=m, children=s)
    found = strings(grammar, s**depth)
    derivations = v * m ** ((s**depth - 1) // (s - 1))
    assert len(found) == derivations
    assert list(found.values()) == pytest.approx([1 / derivations] * derivations, rel=1e-10)
    entropy = -sum(p * math.log(p) for p in found.values())
    assert entropy == pytest.approx(derivational_entropy(grammar), rel=1e-10)


def productions(grammar: PCFG, level: int) -> dict[tuple[str, str], str]:
    """The symbol of each production of two children on one level; fails where two symbols share one."""
    found: dict[tuple[str, str], str] = {}
    for parent, left, right in grammar.binary.tolist():
        if grammar.symbols[parent].startswith(f"{level}."):
            key = grammar.symbols[left], grammar.symbols[right]
            assert key not in found
            found[key] = grammar.symbols[parent]
    return found


@pytest.mark.long
@given(st.integers(2, 40), st.integers(1, 40), seeds)
def test_no_two_symbols_share_a_production(v: int, m: int, seed: int) -> None:
    grammar = language("random-hierarchy", depth=2, symbols=v, productions=min(m, v), seed=seed)
    for level in (1, 2):
        counts = Counter(productions(grammar, level).values())
        assert set(counts.values()) == {min(m, v)}


@pytest.mark.long
@pytest.mark.parametrize(("v", "m"), [(2, 1), (5, 1)])
def test_productions_are_drawn_uniformly_without_replacement(v: int, m: int) -> None:
    """By one level of v symbols: each ordered choice of two productions for the first two symbols; 2,000 seeds."""
    drawn: Counter[tuple[tuple[str, str], ...]] = Counter()
    for seed in range(2000):
        grammar = language("random-hierarchy", depth=1, symbols=v, productions=m, seed=seed)
        by_symbol = {symbol: pair for pair, symbol in productions(grammar, 1).items()}
        drawn[by_symbol["1.1"], by_symbol["1.2"]] += 1
    pairs = list(itertools.product((f"'{i}'" for i in range(1, v + 1)), repeat=2))
    choices = list(itertools.permutations(pairs, 2))
    assert drawn.keys() <= set(choices)
    assert stats.chisquare([drawn[choice] for choice in choices]).pvalue > 0.01


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("symbols=3,productions=4", r"each has at most symbols\^\(children-1\) = 3"),
        ("depth=13,children=3", "strings have 1,594,323 tokens"),
    ],
)
def test_impossible_settings_are_refused(settings: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        language(f"random-hierarchy:{settings}")
    assert caught.value.code == "bad-setting"
