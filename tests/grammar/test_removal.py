"""Scores of test sets without training sentences, against enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import held_out_log_probs, removed_mass
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError


@given(small_pcfgs(max_words=3), length_ranges(3), st.integers(0, 2**12))
def test_what_is_left_is_renormalised(pcfg: PCFG, lengths: LengthRange, pick: int) -> None:
    tables = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]]
    strings = {s: p for table in tables[lengths.low :] for s, p in table.items()}
    assume(strings)
    z = math.fsum(strings.values())
    train = [s for i, s in enumerate(strings) if pick >> (i % 12) & 1]
    other = ("nothing",) * lengths.low
    seen = math.fsum(strings[s] for s in train) / z
    assert removed_mass(pcfg, [*train, *train, other], lengths) == pytest.approx(seen, rel=1e-10, abs=0.0)
    left = [s for s in strings if s not in train]
    if not left:
        with pytest.raises(InputError, match="nothing is left"):
            held_out_log_probs(pcfg, list(strings), train, lengths)
        return
    assume(seen < 1.0 - 1e-6)
    rest = math.fsum(strings[s] for s in left)
    found = np.exp(held_out_log_probs(pcfg, [*left, *train, other], train, lengths))
    wanted = [strings[s] / rest for s in left] + [0.0] * (len(train) + 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=0.0)


def test_without_a_range_sentences_are_those_of_derivations_that_end() -> None:
    """Each doubling of S -> S S p | a q has mass Catalan(n-1) p^(n-1) q^n; 2/3 of all derivations end."""
    pcfg = PCFG.from_text("S -> S S 0.6 | a 0.4")
    assert removed_mass(pcfg, [["a"]]) == pytest.approx(0.6, rel=1e-10)
    found = held_out_log_probs(pcfg, [["a"] * 2, ["a"], ["a"] * 3], [["a"]])
    ends = 2 / 3 - 0.4
    np.testing.assert_allclose(np.exp(found), [0.096 / ends, 0.0, 2 * 0.36 * 0.064 / ends], rtol=1e-9)
    assert found[1] == -np.inf


def test_nothing_removed_changes_nothing() -> None:
    pcfg = PCFG.from_text("S -> S S 0.3 | a 0.7")
    assert removed_mass(pcfg, []) == 0.0
    for lengths in (None, LengthRange(1, 3)):
        found = held_out_log_probs(pcfg, [["a"], ["a", "a"]], [], lengths)
        np.testing.assert_allclose(found, pcfg.exact.string_log_probs([["a"], ["a", "a"]], lengths), rtol=1e-12)


def test_bad_requests_are_refused() -> None:
    with pytest.raises(InputError, match="no sentence of this grammar has a length in"):
        removed_mass(PCFG.from_text("S -> a 1.0"), [["a"]], LengthRange(2, 3))
    with pytest.raises(InputError, match="no derivation of this grammar ends"):
        removed_mass(PCFG.from_text("S -> S S 1.0\nA -> a 1.0"), [["a"]])
    with pytest.raises(InputError, match="nothing is left"):
        held_out_log_probs(PCFG.from_text("S -> a 1.0"), [["a"]], [["a"]])
