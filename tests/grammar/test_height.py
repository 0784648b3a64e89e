"""Masses and scores under a cap on tree height, against enumeration."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import length_ranges, small_pcfgs
from reference_inference import Rules, String, all_strings, derivations, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import token_class
from truesource.grammar.inference.heights import capped_length_masses, capped_length_pmf, height_mass, height_masses
from truesource.grammar.inference.word_types import occurrence_by_length
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError


def low_trees(rules: Rules, cap: int, longest: int) -> dict[str, dict[String, float]]:
    """Strings of each symbol by trees of height at most ``cap``: all trees, one level after the other."""
    level: dict[str, dict[String, float]] = {a: {} for a in rules.symbols}
    for _ in range(2, cap + 1):
        grown: dict[str, dict[String, float]] = {a: defaultdict(float) for a in rules.symbols}
        for a, w, p in rules.lexical:
            grown[a][(w,)] += p
        for a, b, p in rules.unary:
            for s, q in level[b].items():
                grown[a][s] += p * q
        for a, b, c, p in rules.binary:
            for s, q in level[b].items():
                for t, r in level[c].items():
                    if len(s) + len(t) <= longest:
                        grown[a][s + t] += p * q * r
        level = {a: dict(table) for a, table in grown.items()}
    return level


@pytest.mark.long
@given(small_pcfgs(max_words=2), st.integers(2, 6), length_ranges(4))
def test_masses_and_scores_are_those_of_all_low_trees(pcfg: PCFG, cap: int, lengths: LengthRange) -> None:
    rules = rules_of(pcfg)
    table = low_trees(rules, cap, 4)
    masses = capped_length_masses(pcfg, cap, 4)
    for i, name in enumerate(rules.symbols):
        wanted = [math.fsum(p for s, p in table[name].items() if len(s) == m) for m in range(5)]
        np.testing.assert_allclose(masses[:, i], wanted, rtol=1e-10, atol=0.0)
    kept = {s: p for s, p in table[rules.start].items() if len(s) in lengths}
    z = math.fsum(kept.values())
    if z == 0.0:
        with pytest.raises(InputError, match=f"height at most {cap} and a length in {lengths.low}"):
            capped_length_pmf(pcfg, cap, 4, lengths)
        return
    wanted = [math.fsum(p for s, p in kept.items() if len(s) == m) / z for m in range(5)]
    np.testing.assert_allclose(capped_length_pmf(pcfg, cap, 4, lengths), wanted, rtol=1e-10, atol=0.0)


@pytest.mark.long
@given(small_pcfgs(unary_cycles=False, max_words=2), st.integers(2, 6))
def test_the_height_is_that_of_the_tree_over_words(pcfg: PCFG, cap: int) -> None:
    rules = rules_of(pcfg)
    strings = [s for table in all_strings(rules, 3)[rules.start] for s in table]
    assume(strings)
    found = capped_length_masses(pcfg, cap, 3)[:, pcfg.start]
    for n in (1, 2, 3):
        trees = [(tree, p) for s in strings if len(s) == n for tree, p in derivations(rules, s)]
        wanted = math.fsum(p for tree, p in trees if tree.height() <= cap)
        assert found[n] == pytest.approx(wanted, rel=1e-10, abs=0.0)


@pytest.mark.long
@given(small_pcfgs())
def test_the_mass_under_a_cap_rises_to_the_total(pcfg: PCFG) -> None:
    found = height_masses(pcfg, 400)
    assert (found[:2] == 0.0).all()
    assert (np.diff(found) >= -1e-15).all()
    assert found[-1] == pytest.approx(pcfg.exact.total_mass, rel=1e-10)
    high = capped_length_masses(pcfg, 5, 20)[:, pcfg.start]  # height 5: at most 8 words
    assert math.fsum(high) == pytest.approx(found[5], rel=1e-10)
    np.testing.assert_allclose(capped_length_masses(pcfg, 400, 6), pcfg.exact.length_masses(6), rtol=1e-9, atol=1e-13)


def test_a_case_by_hand() -> None:
    """Height at most 3 leaves one or two words: 0.7 and 0.3 x 0.49."""
    pcfg = PCFG.from_text("S -> S S 0.3 | a 0.7")
    np.testing.assert_allclose(height_masses(pcfg, 3), [0.0, 0.0, 0.7, 0.847], rtol=1e-14)
    np.testing.assert_allclose(capped_length_pmf(pcfg, 3, 3), [0.0, 0.7 / 0.847, 0.147 / 0.847, 0.0], rtol=1e-14)


def test_bad_caps_are_refused() -> None:
    pcfg = PCFG.from_text("S -> A A 1.0\nA -> a 1.0")
    with pytest.raises(InputError, match="must be at least 2"):
        height_masses(pcfg, 1)
    with pytest.raises(InputError, match="no tree of this grammar has height at most 2; raise the cap"):
        capped_length_pmf(pcfg, 2, 3)
    with pytest.raises(InputError, match="no derivation of this grammar ends"):
        height_mass(PCFG.from_text("S -> S S 1"), 3)


@pytest.mark.long
@pytest.mark.parametrize(
    "text", ["S -> S S 0.3 | a 0.7", "S -> A S 0.5 | a 0.5\nA -> a 1"], ids=["charts", "automaton"]
)
def test_no_sentence_has_no_words(text: str) -> None:
    pcfg = PCFG.from_text(text)
    assert pcfg.exact.length_pmf(0).tolist() == capped_length_pmf(pcfg, 3, 0).tolist() == [0.0]
    assert occurrence_by_length(pcfg, 0).tolist() == [[0.0]]
    with pytest.raises(InputError, match="has at most 0 tokens"):
        token_class(pcfg, ["a"], high=0)
