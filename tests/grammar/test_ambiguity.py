"""The entropy of the derivations of a sentence, against all of them and against expected rule counts."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from random_grammars import cases
from reference_inference import all_strings, derivations, rules_of

from truesource.grammar.estimate.inside_outside import expected_rule_counts
from truesource.grammar.inference.posterior import derivation_entropy, posterior
from truesource.grammar.pcfg import PCFG, language

Case = tuple[PCFG, list[list[str]]]


@pytest.mark.long
@given(cases(max_size=5, max_symbols=4, unary_cycles=False))
def test_the_entropy_is_that_of_all_derivations(case: Case) -> None:
    pcfg, (sentence,) = case
    weights = [p for _, p in derivations(rules_of(pcfg), sentence)]
    total = math.fsum(weights)
    assume(total > 0.0)
    wanted = -math.fsum(p / total * math.log(p / total) for p in weights if p > 0.0)
    assert derivation_entropy(posterior(pcfg, sentence)) == pytest.approx(wanted, abs=1e-10)


@pytest.mark.long
@given(cases(max_size=5))
def test_with_chains_that_go_round_it_is_that_of_expected_counts(case: Case) -> None:
    pcfg, (sentence,) = case
    counts = expected_rule_counts(pcfg, [sentence])
    assume(not counts.impossible)
    spent = counts.binary @ pcfg.binary_logp + counts.unary @ pcfg.unary_logp + counts.lexical @ pcfg.lexical_logp
    found = derivation_entropy(posterior(pcfg, sentence))
    assert found == pytest.approx(float(counts.log_probs[0] - spent), abs=1e-9)


def test_binary_bracketings_of_one_symbol_are_counted_by_catalan_numbers() -> None:
    """All have one probability, so the entropy is the logarithm of their number."""
    grammar = PCFG.from_text("S -> S S 0.4 | 'a' 0.6")
    for n in (1, 2, 3, 8, 80):
        wanted = math.log(math.comb(2 * n - 2, n - 1) // n)
        assert derivation_entropy(posterior(grammar, ["a"] * n)) == pytest.approx(wanted, rel=1e-12, abs=1e-10)


def test_a_chain_that_goes_round_is_a_geometric_number_of_rounds() -> None:
    grammar = PCFG.from_text("S -> S 0.25 | 'a' 0.75")
    wanted = -math.log(0.75) - 0.25 / 0.75 * math.log(0.25)
    assert derivation_entropy(posterior(grammar, ["a"])) == pytest.approx(wanted, rel=1e-12)


def test_an_unambiguous_language_has_none() -> None:
    grammar = language("dyck", k=2, depth=3)
    rules = rules_of(grammar)
    tables = all_strings(rules, 6)[rules.start]
    assert sum(map(len, tables)) > 10
    for sentence in (string for table in tables for string in table):
        assert derivation_entropy(posterior(grammar, sentence)) < 1e-9
