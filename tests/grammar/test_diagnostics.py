"""The grammar doctor's findings, and what is refused."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict

import pytest
from hypothesis import given
from random_grammars import cases, small_pcfgs
from reference_inference import all_strings, rules_of

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.sentence_records import sentence_records
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.diagnostics import coverage, diagnose, left_recursion, require_consistent, unary_cycles
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

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


@pytest.mark.long
@given(small_pcfgs())
def test_consistent_grammars_pass_and_their_diagnosis_is_json(pcfg: PCFG) -> None:
    require_consistent(pcfg)
    json.dumps(asdict(diagnose(pcfg)), allow_nan=False)


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
    assert "probability mass is on sentences" in str(caught.value)
    assert str(caught.value).endswith("(some.grammar)")
    assert "\n" not in str(caught.value)


def test_a_critical_grammar_is_refused() -> None:
    with pytest.raises(InputError, match=r"spectral radius is 1,.*S -> S S \(0\.5\)") as caught:
        require_consistent(PCFG.from_text("S -> S S 0.5 | a 0.5"))
    assert caught.value.code == "inconsistent"


def test_the_remedy_of_a_caller_ends_the_refusal() -> None:
    with pytest.raises(InputError, match=r"; do this \(some\.grammar\)$"):
        require_consistent(PCFG.from_text("S -> S S 0.5 | a 0.5"), "some.grammar", remedy="do this")


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


def test_rounded_probabilities_are_divided_by_their_sums() -> None:
    pcfg = PCFG.from_text("S -> S S 0.3 | A 0.6999995\nA -> a 0.4999995 | b 0.4999998")
    found = diagnose(pcfg)
    assert found.total_mass == pytest.approx(1.0, abs=1e-12)
    assert found.problems == ()


def test_a_trap_is_no_rounding() -> None:
    with pytest.raises(InputError, match="leaks through"):
        require_consistent(PCFG.from_text("S -> A 0.0001 | a 0.9999\nA -> A 0.9999999"))


def test_a_grammar_without_endings_is_no_truth_about_all_lengths() -> None:
    """Its mass is the smaller root of 0.7 m^2 + 0.3 = m, 3/7: the first word sums to that."""
    grows = PCFG.from_text("S -> S S 0.7 | a 0.3")
    assert grows.next_token([]).probability.sum() == pytest.approx(3 / 7, rel=1e-12)
    for work in (lambda: Oracle(grows), lambda: sentence_records(grows, [["a"]], lengths=None)):
        with pytest.raises(InputError, match=r"total probability 0\.428571.*--lengths"):
            work()
    lengths = LengthRange(1, 4)
    assert Oracle(grows, lengths=lengths).next_token([]).probability.sum() == pytest.approx(1.0, rel=1e-12)
    (record,) = sentence_records(grows, [["a"]], lengths=lengths)
    masses = [0.3, 0.7 * 0.3**2, 2 * 0.7**2 * 0.3**3, 5 * 0.7**3 * 0.3**4]  # Catalan numbers of trees
    assert record["logprob"] == pytest.approx(math.log(0.3 / sum(masses)), rel=1e-12)
    assert sentence_records(grows, [["a"]], lengths=None, causal=False)[0]["masked_logprob"] == [0.0]
    Oracle(PCFG.from_text("S -> S S 0.5 | a 0.5"))  # every derivation ends, if late


def test_symbols_out_of_reach_are_named_but_harmless() -> None:
    pcfg = PCFG.from_text("S -> S S 0.3 | a 0.7\nLOST -> S S 0.4 | a 0.6\nIDLE -> IDLE S 1.0")
    found = diagnose(pcfg)
    assert found.unreachable == ("LOST", "IDLE")
    assert found.unproductive == ("IDLE",)
    assert found.problem_codes == ("unproductive", "unreachable")
    assert "unreachable from S: LOST, IDLE" in found.problems[1]
    assert found.serious == found.problems[:1]
    require_consistent(pcfg)


def test_long_lists_of_symbols_are_cut() -> None:
    lines = "\n".join(f"X{i} -> a 1.0" for i in range(9))
    (problem,) = diagnose(PCFG.from_text(f"S -> a 1.0\n{lines}")).problems
    assert problem == "9 symbols unreachable from S: X0, X1, X2, X3, X4 and 4 more"


def comes_back(edges: set[tuple[str, str]], symbols: tuple[str, ...]) -> dict[str, set[str]]:
    """For each symbol on a cycle the symbols that it reaches and that reach it, by transitive closure."""
    reach = {a: {b for x, b in edges if x == a} for a in symbols}
    for k in symbols:
        for a in symbols:
            if k in reach[a]:
                reach[a] |= reach[k]
    return {a: {b for b in reach[a] if a in reach[b]} for a in symbols if a in reach[a]}


@pytest.mark.long
@given(small_pcfgs())
def test_cycles_are_those_of_the_transitive_closure(pcfg: PCFG) -> None:
    rules = rules_of(pcfg)
    unary = {(a, b) for a, b, _ in rules.unary}
    corners = unary | {(a, b) for a, b, _, _ in rules.binary}
    for found, edges in ((unary_cycles(pcfg), unary), (left_recursion(pcfg), corners)):
        wanted = comes_back(edges, pcfg.symbols)
        assert found.symbols == len(wanted)
        assert found.groups == len({frozenset(group) for group in wanted.values()})
        assert bool(found.example) == bool(wanted)
        if found.example:
            assert found.example[0] == found.example[-1]
            assert len(set(found.example)) == len(found.example) - 1
            assert set(itertools.pairwise(found.example)) <= edges


def test_the_example_of_a_cycle_is_a_shortest_one() -> None:
    pcfg = PCFG.from_text("S -> A 0.5 | a 0.5\nA -> B 0.2 | C 0.2 | b 0.6\nB -> C 0.5 | c 0.5\nC -> A 0.1 | d 0.9")
    assert unary_cycles(pcfg).example == ("A", "C", "A")
    found = diagnose(pcfg)
    assert (found.unary_cyclic, found.unary_cycle_groups, found.unary_cycle) == (3, 1, ("A", "C", "A"))
    assert (found.left_recursive, found.left_recursive_groups, found.left_cycle) == (3, 1, ("A", "C", "A"))
    none = diagnose(PCFG.from_text("S -> A S 0.3 | a 0.7\nA -> a 1.0"))
    assert (none.unary_cyclic, none.left_recursive, none.left_cycle) == (0, 0, ())


@pytest.mark.long
@given(cases(most=4))
def test_coverage_adds_up(case: tuple[PCFG, list[list[str]]]) -> None:
    pcfg, texts = case
    texts = [*texts, ["a", "zebra"], ["zebra", "yak"]]
    seen = coverage(pcfg, texts)
    assert (seen.sentences, seen.tokens) == (len(texts), sum(map(len, texts)))
    words = [word for text in texts for word in text]
    unknown = [word for word in words if word not in pcfg.vocabulary]
    assert (seen.unknown_tokens, seen.unknown_types) == (len(unknown), len(set(unknown)))
    assert seen.types == len(set(words))
    assert dict(seen.unknown) == {word: unknown.count(word) for word in set(unknown)}
    assert [n for _, n in seen.unknown] == sorted((n for _, n in seen.unknown), reverse=True)
    scores = [string_prob(pcfg, text) for text in texts]
    assert seen.impossible == tuple(i for i, p in enumerate(scores, start=1) if p == 0.0)
    logs = [math.log(p) for p in scores if p > 0.0]
    if logs:
        assert seen.mean_log_prob == pytest.approx(sum(logs) / len(logs), abs=1e-10)
    else:
        assert seen.mean_log_prob is None
    json.dumps(asdict(seen), allow_nan=False)


def string_prob(pcfg: PCFG, text: list[str]) -> float:
    """Exact, by enumeration."""
    if any(word not in pcfg.vocabulary for word in text):
        return 0.0
    return float(all_strings(rules_of(pcfg), len(text))["S"][len(text)].get(tuple(text), 0.0))


def test_coverage_names_the_sentence_whose_chart_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.grammar.inference.batch.memory", lambda: 10_000)
    with pytest.raises(InputError, match="sentence 3 has 200 tokens: its chart needs"):
        coverage(HEALTHY, [["zebra"], ["a"], ["a"] * 200])


def test_coverage_within_lengths_conditions_on_them() -> None:
    seen = coverage(HEALTHY, [["a"], ["a", "a"], ["a", "a", "a"]], lengths=LengthRange(2, 3))
    assert seen.impossible == (1,)
    two, three = 0.3 * 0.7**2, 2 * 0.3**2 * 0.7**3
    assert seen.mean_log_prob == pytest.approx(
        (math.log(two / (two + three)) + math.log(three / (two + three))) / 2, abs=1e-10
    )
