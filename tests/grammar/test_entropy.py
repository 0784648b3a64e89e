"""Entropy of derivations against enumeration and a derivative of tempered masses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, derivations, length_mass, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

pytestmark = pytest.mark.long


def tempered_mass(pcfg: PCFG, power: complex, lengths: LengthRange) -> complex:
    """Sum over derivations of the range of their probability to a power, by a plain programme over lengths."""
    n = len(pcfg.symbols)
    chains = np.eye(n, dtype=complex)
    np.subtract.at(chains, tuple(pcfg.unary.T), np.exp(power * pcfg.unary_logp))
    mass = np.zeros((lengths.high + 1, n), dtype=complex)
    a, b, c = pcfg.binary.T
    for m in range(1, lengths.high + 1):
        if m == 1:
            np.add.at(mass[1], pcfg.lexical[:, 0], np.exp(power * pcfg.lexical_logp))
        for k in range(1, m):
            np.add.at(mass[m], a, np.exp(power * pcfg.binary_logp) * mass[k, b] * mass[m - k, c])
        mass[m] = np.linalg.solve(chains, mass[m])
    return complex(mass[lengths.low :, pcfg.start].sum())


@given(small_pcfgs(), length_ranges(5))
def test_entropy_given_a_range_is_a_derivative_of_tempered_masses(pcfg: PCFG, lengths: LengthRange) -> None:
    """H = ln Z - Z'(1) / Z, where Z(t) sums p^t over derivations; unary cycles included."""
    assume(sum(length_mass(rules_of(pcfg), lengths.high)[lengths.low :]) > 0.0)
    z = tempered_mass(pcfg, 1.0 + 1e-30j, lengths)
    wanted = math.log(z.real) - z.imag / 1e-30 / z.real
    assert derivational_entropy(pcfg, lengths) == pytest.approx(wanted, rel=1e-10, abs=1e-12)


@given(small_pcfgs(unary_cycles=False, max_symbols=4, max_words=3), length_ranges(3))
def test_entropy_given_a_range_is_that_of_all_trees(pcfg: PCFG, lengths: LengthRange) -> None:
    rules = rules_of(pcfg)
    strings = [s for table in all_strings(rules, lengths.high)[rules.start][lengths.low :] for s in table]
    assume(0 < len(strings) <= 200)
    p = np.array([q for s in strings for _, q in derivations(rules, s)])
    p /= p.sum()
    assert derivational_entropy(pcfg, lengths) == pytest.approx(-(p * np.log(p)).sum(), rel=1e-10, abs=1e-12)


def test_a_wide_range_gives_the_unconditioned_entropy_in_closed_form() -> None:
    pcfg = PCFG.from_text("S -> S S 0.2 | a 0.8")
    wanted = -(0.2 * math.log(0.2) + 0.8 * math.log(0.8)) / 0.6
    assert derivational_entropy(pcfg) == pytest.approx(wanted, rel=1e-12)
    assert derivational_entropy(pcfg, LengthRange(1, 150)) == pytest.approx(wanted, rel=1e-10)
    assert derivational_entropy(pcfg, LengthRange(3, 3)) == pytest.approx(math.log(2), rel=1e-12)  # two brackets


def test_a_grammar_that_leaks_is_welcome_given_a_range_only() -> None:
    pcfg = PCFG.from_text("S -> S S 0.6 | a 0.4")
    assert derivational_entropy(pcfg, LengthRange(4, 4)) == pytest.approx(math.log(5), rel=1e-12)
    with pytest.raises(InputError, match="spectral radius"):
        derivational_entropy(pcfg)
    with pytest.raises(InputError, match="no sentence of this grammar has a length in"):
        derivational_entropy(PCFG.from_text("S -> a 1.0"), LengthRange(2, 3))
