"""Empty rules: removed exactly, in every text format, against an enumeration of the derivations that have them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from truesource.grammar.formats.earleyx import parse_earleyx
from truesource.grammar.formats.nltk import parse_nltk
from truesource.grammar.formats.weight_first import parse_weight_first
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank.binarise import surface

LONGEST = 3
Rules = dict[str, list[tuple[tuple[str, ...], float]]]


def string_masses(rules: Rules, steps: int) -> dict[str, dict[tuple[str, ...], float]]:
    """P(symbol derives string), strings up to `LONGEST` words with the empty one, by iteration from zero."""
    masses: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in rules}
    for _ in range(steps):
        new: dict[str, dict[tuple[str, ...], float]] = {}
        for name, alternatives in rules.items():
            total: dict[tuple[str, ...], float] = {}
            for children, p in alternatives:
                partial: dict[tuple[str, ...], float] = {(): p}
                for child in children:
                    below = masses[child] if child in rules else {(child,): 1.0}
                    longer: dict[tuple[str, ...], float] = {}
                    for left, x in partial.items():
                        for right, y in below.items():
                            if len(left) + len(right) <= LONGEST:
                                longer[left + right] = longer.get(left + right, 0.0) + x * y
                    partial = longer
                for string, x in partial.items():
                    total[string] = total.get(string, 0.0) + x
            new[name] = total
        masses = new
    return masses


@st.composite
def rules_with_empty_ones(draw: st.DrawFn) -> Rules:
    """Grammars of up to 3 symbols, nullable and cyclic as it comes, whose recursion dies out within 400 steps."""
    names = ["S", "A", "B"][: draw(st.integers(1, 3))]
    result: Rules = {}
    for name in names:
        child = st.sampled_from([*names, "a", "b"])
        longer = draw(st.lists(st.lists(child, min_size=1, max_size=3).map(tuple), min_size=0, max_size=3, unique=True))
        ends = draw(st.lists(st.sampled_from([(), ("a",), ("b",)]), min_size=1, max_size=2, unique=True))
        weights = draw(st.lists(st.integers(1, 9), min_size=len(longer) + len(ends), max_size=len(longer) + len(ends)))
        recursive = sum(weights[: len(longer)])
        scale = 0.3 / recursive if recursive else 0.0  # at most 0.9 children that are symbols, in the mean
        rest = 1.0 - (0.3 if recursive else 0.0)
        alternatives: dict[tuple[str, ...], float] = {}
        for children, weight in zip(longer, weights, strict=False):
            alternatives[children] = weight * scale
        total = sum(weights[len(longer) :])
        for children, weight in zip(ends, weights[len(longer) :], strict=True):
            alternatives[children] = alternatives.get(children, 0.0) + rest * weight / total
        result[name] = list(alternatives.items())
    return result


def as_text(rules: Rules, form: str) -> str:
    """The rules in a format, empty ones in its own way."""
    lines = []
    for parent, alternatives in rules.items():
        for children, p in alternatives:
            words = [c if c in rules else {"earleyx": f"_{c}", "eisner": c}.get(form, f"'{c}'") for c in children]
            inner = " ".join(words)
            lines.append(
                {
                    "text": f"{parent} -> {inner or 'ε'} {p!r}",
                    "nltk": f"{parent} -> {inner} [{p:.17f}]",
                    "earleyx": f"{parent}->[{inner}] : {p!r}",
                    "eisner": f"{p!r}\t{parent}\t{inner or '<eps>'}",
                }[form]
            )
    return "\n".join(lines)


@pytest.mark.long
@given(rules_with_empty_ones())
def test_strings_keep_their_probabilities_given_that_they_are_not_empty(rules: Rules) -> None:
    masses = string_masses(rules, 400)["S"]
    empty = masses.pop((), 0.0)
    assume(masses and any(children == () for alternatives in rules.values() for children, _ in alternatives))
    pcfg = PCFG.from_text(as_text(rules, "text"))
    assert pcfg.meta["empty"]["mass"] == pytest.approx(empty, abs=1e-12)
    assert pcfg.exact.total_mass == pytest.approx(1.0, abs=1e-12)
    assert np.allclose(pcfg.row_sums, 1.0, atol=1e-14)
    for string, mass in masses.items():
        assert math.exp(pcfg.log_prob(list(string))) == pytest.approx(mass / (1.0 - empty), rel=1e-10, abs=1e-14)
    total = sum(math.exp(pcfg.log_prob(list(s))) for s in masses)
    assert total == pytest.approx(sum(masses.values()) / (1.0 - empty), rel=1e-10)


@pytest.mark.long
@given(rules_with_empty_ones())
def test_every_text_format_removes_them(rules: Rules) -> None:
    assume(string_masses(rules, 30)["S"].keys() - {()})
    assume(any(children == () for alternatives in rules.values() for children, _ in alternatives))
    wanted = PCFG.from_text(as_text(rules, "text"))
    start = "%start S\n"
    found = [
        PCFG.of(parse_nltk(start + as_text(rules, "nltk"))),
        PCFG.of(parse_earleyx("ROOT->[S] : 1.0\n" + as_text(rules, "earleyx"))),
        PCFG.of(parse_weight_first("1 ROOT S\n" + as_text(rules, "eisner"))),
    ]
    for string in (["a"], ["b"], ["a", "b"], ["a", "a", "b"]):
        p = math.exp(wanted.log_prob(string))
        assert [math.exp(pcfg.log_prob(string)) for pcfg in found] == pytest.approx([p] * 3, rel=1e-12, abs=1e-15)
    assert all(pcfg.meta["empty"]["mass"] == pytest.approx(wanted.meta["empty"]["mass"]) for pcfg in found)


@pytest.mark.parametrize("sign", ["ε", "ϵ", "λ", "∅", "epsilon", "<eps>", "<epsilon>", ""])
def test_every_sign_of_the_empty_string(sign: str) -> None:
    pcfg = PCFG.from_text(f"S -> a S b 0.5 | {sign} 0.5")
    assert pcfg.meta["empty"] == {"rules": 1, "symbols": ["S"], "mass": 0.5}
    assert math.exp(pcfg.log_prob(["a", "b"])) == pytest.approx(0.5, rel=1e-15)
    assert pcfg.log_prob(["a", "ε", "b"]) == -math.inf


def test_a_sign_that_is_quoted_or_has_rules_is_no_sign() -> None:
    quoted = PCFG.from_text("S -> 'a' S 'b' 0.5 | 'ε' 0.5")
    assert "empty" not in quoted.meta
    assert math.exp(quoted.log_prob(["a", "ε", "b"])) == pytest.approx(0.25)
    symbol = PCFG.from_text("S -> λ λ 1\nλ -> a 1")
    assert symbol.log_prob(["a", "a"]) == 0.0
    assert PCFG.from_text(quoted.to_text()) == quoted


@pytest.mark.long
def test_trees_lose_the_nodes_above_nothing() -> None:
    pcfg = PCFG.from_text("S -> NP ADV VP 1\nNP -> dogs 1\nADV -> ε 0.75 | often 0.25\nVP -> run 1")
    tree, log_prob = pcfg.viterbi(["dogs", "run"])
    assert str(surface(tree, pcfg)) == "(S (NP dogs) (VP run))"
    assert log_prob == pytest.approx(math.log(0.75), rel=1e-15)


def test_a_rare_word_among_empty_derivations_keeps_its_digits() -> None:
    """P(not empty) is 1e-13 of each; ratios of such masses need more than 1 - P(empty)."""
    pcfg = PCFG.from_text("S -> A 0.5 | B 0.5\nA -> x 1e-13 | ε 0.9999999999999\nB -> y 3e-13 | ε 0.9999999999997")
    assert math.exp(pcfg.log_prob(["x"])) == pytest.approx(0.25, rel=1e-12)
    assert math.exp(pcfg.log_prob(["y"])) == pytest.approx(0.75, rel=1e-12)


def test_unary_cycles_through_empty_siblings_are_summed() -> None:
    """``S -> S S`` with an empty S is a loop; P(one a) is the number of trees weighted, 0.3 / (1 - 2 0.2 e)."""
    pcfg = PCFG.from_text("S -> S S 0.2 | a 0.3 | ε 0.5")
    e = (1.0 - math.sqrt(1.0 - 4 * 0.2 * 0.5)) / (2 * 0.2)
    assert pcfg.meta["empty"]["mass"] == pytest.approx(e, rel=1e-14)
    assert math.exp(pcfg.log_prob(["a"])) == pytest.approx(0.3 / (1.0 - 0.4 * e) / (1.0 - e), rel=1e-13)


@pytest.mark.long
def test_a_critical_grammar_keeps_its_digits() -> None:
    """Derivations that may be empty at the edge of never ending: P(empty) of ``S -> S S | ε | a`` near 1."""
    pcfg = PCFG.from_text("S -> S S 0.5 | ε 0.4999999 | a 1e-7")
    e = 1.0 - math.sqrt(1.0 - 4 * 0.5 * 0.4999999)
    assert pcfg.meta["empty"]["mass"] == pytest.approx(e, rel=1e-12)
    assert pcfg.exact.total_mass == pytest.approx(1.0, abs=1e-10)
    assert math.exp(pcfg.log_prob(["a"])) == pytest.approx(1e-7 / (1.0 - e) ** 2, rel=1e-9)


def test_words_are_split_on_request(tmp_path: Path) -> None:
    text = "S -> 'a cow' 0.5 | '' 0.5"
    with pytest.raises(InputError, match="--cut-words"):
        PCFG.from_text(text)
    (tmp_path / "g.txt").write_text(text)
    for pcfg in (PCFG.from_text(text, cut_words=True), PCFG.load(tmp_path / "g.txt", cut_words=True)):
        assert pcfg.log_prob(["a", "cow"]) == pytest.approx(0.0, abs=1e-15)
        assert pcfg.meta["empty"]["mass"] == 0.5
