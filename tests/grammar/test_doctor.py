"""The grammar doctor's findings, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from random_grammars import small_pcfgs

from grammar.doctor import diagnose, require_consistent
from grammar.errors import InputError
from grammar.pcfg import PCFG

HEALTHY = PCFG.from_text("S -> S S 0.3 | a 0.7")


def test_a_healthy_grammar_has_no_problems() -> None:
    found = diagnose(HEALTHY)
    assert found.problems == ()
    assert (found.symbols, found.words, found.binary, found.unary, found.lexical) == (1, 1, 1, 0, 1)
    assert found.total_mass == pytest.approx(1.0)
    assert found.spectral_radius == pytest.approx(0.6)
    assert found.mean_length == pytest.approx(0.7 / 0.4)
    assert found.derivational_entropy == pytest.approx(0.6108643020548935 / 0.4)  # H(0.3) / (1 - 0.6)
    require_consistent(HEALTHY)


@given(small_pcfgs())
def test_consistent_grammars_pass_and_their_diagnosis_is_json(pcfg: PCFG) -> None:
    require_consistent(pcfg)
    json.dumps(diagnose(pcfg).as_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("S -> S S 0.6 | a 0.4", ["S -> S S (0.6)"]),
        ("S -> A 0.5 | B 0.5\nA -> A A 0.6 | a 0.4\nB -> B B 0.3 | b 0.7", ["A -> A A (0.6)"]),
        ("S -> A B 1.0\nA -> B B 0.8 | a 0.2\nB -> A 0.9 | b 0.1", ["A -> B B (0.8)", "B -> A (0.9)"]),
        # two recursions that grow equally fast: one of them is named
        ("S -> A 0.5 | B 0.5\nA -> A A 0.6 | a 0.4\nB -> B B 0.6 | b 0.4", [" (0.6)"]),
        ("S -> A 1.0\nA -> A A 0.6 | B 0.4\nB -> B B 0.6 | b 0.4", [" (0.6)"]),
    ],
)
def test_an_exploding_grammar_is_refused_with_its_rules_named(text: str, named: list[str]) -> None:
    pcfg = PCFG.from_text(text)
    found = diagnose(pcfg)
    assert found.growing
    assert found.mean_length is None
    assert found.derivational_entropy is None
    with pytest.raises(InputError, match="spectral radius") as caught:
        require_consistent(pcfg, "some.grammar")
    for name in named:
        assert name in str(caught.value)
    assert "probability mass ends in a sentence" in str(caught.value)
    assert str(caught.value).endswith("(some.grammar)")
    assert "\n" not in str(caught.value)


def test_a_critical_grammar_is_refused() -> None:
    with pytest.raises(InputError, match=r"spectral radius is 1,.*S -> S S \(0\.5\)"):
        require_consistent(PCFG.from_text("S -> S S 0.5 | a 0.5"))


@pytest.mark.parametrize(
    "loop", ["A -> B 0.3 | C 0.7\nB -> A 1.0\nC -> A 1.0", "A -> A 1.0", "A -> A A 1.0", "A -> A S 1.0"]
)
def test_a_grammar_whose_mass_leaks_into_a_trap_is_refused(loop: str) -> None:
    pcfg = PCFG.from_text(f"S -> A 0.25 | a 0.75\n{loop}")
    found = diagnose(pcfg)
    assert found.total_mass == pytest.approx(0.75, rel=1e-9)
    assert "A" in found.unproductive
    assert found.growing
    with pytest.raises(InputError, match=r"only 0\.75 of the probability mass.*derive no sentence"):
        require_consistent(pcfg)


def test_symbols_out_of_reach_are_named_but_harmless() -> None:
    pcfg = PCFG.from_text("S -> S S 0.3 | a 0.7\nLOST -> S S 0.4 | a 0.6\nIDLE -> IDLE S 1.0")
    found = diagnose(pcfg)
    assert found.unreachable == ("LOST", "IDLE")
    assert found.unproductive == ("IDLE",)
    assert any("cannot be reached from S: LOST, IDLE" in problem for problem in found.problems)
    require_consistent(pcfg)


def test_long_lists_of_symbols_are_cut() -> None:
    lines = "\n".join(f"X{i} -> a 1.0" for i in range(9))
    (problem,) = diagnose(PCFG.from_text(f"S -> a 1.0\n{lines}")).problems
    assert problem == "9 symbols cannot be reached from S: X0, X1, X2, X3, X4 and 4 more"
