"""Arithmetic expressions: one derivation a string, precedence, the mean length in closed form."""

from __future__ import annotations

import math
import operator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference_inference import all_strings, rules_of

from truesource.generator.sampler import Sampler
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.languages.arithmetic import ArithmeticSettings
from truesource.grammar.pcfg import language
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

SETTINGS = ArithmeticSettings(add=0.25, multiply=0.35, bracket=0.2, digits=1, variables=1)


def probability(tokens: tuple[str, ...], settings: ArithmeticSettings) -> float:
    """Of a string, by recursive descent over its factors; 0 where it is no expression."""
    a, m, b = settings.add, settings.multiply, settings.bracket
    waiting, found = [*tokens, "end"], 1.0

    def expression() -> None:
        nonlocal found
        term()
        while waiting[0] in ("+", "-"):
            waiting.pop(0)
            found *= a / 2
            term()
        found *= 1 - a

    def term() -> None:
        nonlocal found
        factor()
        while waiting[0] in ("*", "/"):
            waiting.pop(0)
            found *= m / 2
            factor()
        found *= 1 - m

    def factor() -> None:
        nonlocal found
        if waiting[0] == "(":
            waiting.pop(0)
            found *= b
            expression()
            found *= waiting[0] == ")"
        else:
            found *= (1 - b) / (settings.digits + settings.variables) * (waiting[0][0] in "0123456789x")
        if found:
            waiting.pop(0)

    expression()
    return found if waiting == ["end"] else 0.0


@pytest.mark.long
def test_string_probabilities_are_those_of_the_only_derivation() -> None:
    """Every sequence of up to 4 tokens; sentences drawn, whole and without a token in the middle."""
    grammar = language("arithmetic", **SETTINGS.model_dump())
    strings = [s for n in range(1, 5) for s in product(("0", "x1", "+", "*", "(", ")"), repeat=n)]
    sampler = Sampler(grammar, None)
    drawn = [tuple(s) for s in sampler.sentences(sampler.draw(200, random_state(1, 2))) if 2 < len(s) < 30]
    strings += drawn + [s[: len(s) // 2] + s[len(s) // 2 + 1 :] for s in drawn]
    scores = np.exp(grammar.exact.string_log_probs(strings))
    assert scores == pytest.approx([probability(s, SETTINGS) for s in strings], rel=1e-10, abs=0.0)
    assert (scores > 0).sum() > len(drawn) > 50


def test_every_string_has_one_derivation() -> None:
    """The most probable derivation has all the probability of each string of up to 7 tokens, 1 + 5 + 29 + 185."""
    grammar = language("arithmetic", add=0.3, multiply=0.2, bracket=0.4, digits=1)
    found = {s: p for table in all_strings(rules_of(grammar), 7)["E"] for s, p in table.items()}
    assert len(found) == 220
    for string, p in found.items():
        assert grammar.viterbi(string)[1] == pytest.approx(math.log(p), rel=1e-10)


OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


def value(tree: Tree) -> Fraction:
    """Of an expression, by its tree; symbols of binarisation are taken out."""
    below = list(tree.children)
    while isinstance(below[-1], Tree) and below[-1].label.startswith("@"):
        below += below.pop().children
    first, *rest = below
    if not rest:
        return value(first) if isinstance(first, Tree) else Fraction(first)
    middle, last = (each for each in rest if isinstance(each, Tree))
    assert isinstance(first, Tree)
    if first.leaves() == ["("]:
        return value(middle)
    found: Fraction = OPERATORS[middle.leaves()[0]](value(first), value(last))
    return found


def test_trees_have_the_precedence_of_arithmetic() -> None:
    """The value that a tree gives to its string is Python's; strings that divide by zero are left out."""
    grammar = language("arithmetic")
    sampler = Sampler(grammar, None)
    checked = 0
    for string in sampler.sentences(sampler.draw(300, random_state(1, 2))):
        if len(string) > 15:
            continue
        exact = [f"Fraction({token})" if token.isdigit() else token for token in string]
        try:
            expected = eval(" ".join(exact), {"Fraction": Fraction})
        except ZeroDivisionError:
            continue
        assert value(grammar.viterbi(string)[0]) == expected
        checked += len(string) > 4
    assert checked > 50


shares = st.floats(0.0, 0.95).map(lambda p: round(p, 3))


@pytest.mark.long
@given(shares, shares, shares, st.integers(1, 10), st.integers(0, 3))
def test_mean_length_and_entropy_are_their_closed_forms(
    add: float, multiply: float, bracket: float, digits: int, variables: int
) -> None:
    """Expressions, terms and factors that a string has on average; one choice at the end of each part of them."""
    room = (1 - add) * (1 - multiply) - bracket
    assume(room > 1e-3)
    chosen = {"add": add, "multiply": multiply, "bracket": bracket, "digits": digits, "variables": variables}
    grammar = language("arithmetic", **chosen)
    expected = (1 + bracket + multiply + add * (1 - multiply)) / room
    assert grammar.exact.mean_length == pytest.approx(expected, rel=1e-8)
    expressions = (1 - add) * (1 - multiply) / room  # not in a longer one
    factors = 1 / room
    terms = expressions / (1 - add)

    def choice(p: float, n: int) -> float:
        """Entropy of: yes with p, one of n; or no."""
        return (-p * math.log(p / n) if p else 0.0) - (1 - p) * math.log(1 - p)

    of_a_factor = choice(bracket, 1) + (1 - bracket) * math.log(digits + variables)
    entropy = terms * choice(add, 2) + factors * choice(multiply, 2) + factors * of_a_factor
    assert derivational_entropy(grammar) == pytest.approx(entropy, rel=1e-8, abs=1e-10)
    assert ArithmeticSettings(**chosen).n_rules() >= grammar.n_rules


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("add=0.3,multiply=0.3,bracket=0.5", "infinitely many tokens on average"),
        ("add=0.5,multiply=0.5,bracket=0.25", "infinitely many tokens on average"),
        ("add=0.999,multiply=0.999,bracket=0", "strings have 1,999,999 tokens on average, more than 1,000,000"),
        ("digits=0", "no digits and no variables"),
    ],
)
def test_expressions_that_do_not_end_are_refused(settings: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        language(f"arithmetic:{settings}")
    assert caught.value.code == "bad-setting"
