"""Arithmetic expressions with precedence and brackets."""

from __future__ import annotations

import math
from typing import Self

from pydantic import Field, model_validator

from truesource.grammar.building import grammar_of
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules

LARGEST_MEAN = 1_000_000  #: tokens of a string


class ArithmeticSettings(LanguageSettings):
    """Parameters of arithmetic expressions."""

    add: float = Field(0.3, ge=0.0, lt=1.0, description="Probability of a further term after each, with + or -.")
    multiply: float = Field(0.3, ge=0.0, lt=1.0, description="Probability of a further factor after each, with * or /.")
    bracket: float = Field(0.3, ge=0.0, lt=1.0, description="Probability that a factor is an expression in brackets.")
    digits: int = Field(10, ge=0, le=10, description="Number of digits, from 0 on; numbers have one digit.")
    variables: int = Field(0, ge=0, le=100_000, description="Number of variables, x1, x2, ..., as probable as digits.")

    @model_validator(mode="after")
    def _check_expressions_end(self) -> Self:
        if self.digits + self.variables == 0:
            raise ValueError("there are no digits and no variables; choose at least one of either")
        mean = self.mean_length
        if mean > LARGEST_MEAN:
            many = "infinitely many" if mean == math.inf else f"{mean:,.0f}"
            raise ValueError(
                f"strings have {many} tokens on average, more than {LARGEST_MEAN:,};"
                " choose a lower bracket, add or multiply"
            )
        return self

    @property
    def mean_length(self) -> float:
        """Mean number of tokens of a string; infinite unless ``bracket < (1 - add) (1 - multiply)``."""
        a, m, b = self.add, self.multiply, self.bracket
        room = (1.0 - a) * (1.0 - m) - b
        return (1.0 + b + m + a * (1.0 - m)) / room if room > 0.0 else math.inf

    def n_rules(self) -> int:
        """Return the number of rules: expressions and terms, brackets in rules of two children, and the words."""
        return 20 + self.digits + self.variables


def build(settings: ArithmeticSettings) -> GrammarRules:
    """Build expressions of terms of factors: digits, variables, and expressions in brackets.

    ``E -> E + T | E - T`` with probability add/2 each, ``E -> T``; ``T -> T * F | T / F`` with multiply/2 each, ``T ->
    F``; ``F -> ( E )`` with probability ``bracket``, else a digit or variable, uniformly. Operators of equal precedence
    associate to the left. Each string has one derivation.

    With a = add, m = multiply and b = bracket, a string has ``(1 + b + m + a (1-m)) / ((1-a)(1-m) - b)`` tokens on
    average, infinitely many if the denominator is not positive.
    """
    atoms = [str(i) for i in range(settings.digits)] + [f"x{i}" for i in range(1, settings.variables + 1)]
    rules: list[tuple[str, tuple[str, ...], float]] = [
        ("E", ("T",), 1.0 - settings.add),
        ("E", ("E", "+", "T"), settings.add / 2),
        ("E", ("E", "-", "T"), settings.add / 2),
        ("T", ("F",), 1.0 - settings.multiply),
        ("T", ("T", "*", "F"), settings.multiply / 2),
        ("T", ("T", "/", "F"), settings.multiply / 2),
        ("F", ("(", "E", ")"), settings.bracket),
        *(("F", (atom,), (1.0 - settings.bracket) / len(atoms)) for atom in atoms),
    ]
    return grammar_of(rules, start="E")


LANGUAGE = Language(
    title="arithmetic expressions with precedence and brackets",
    tests="precedence and nesting, of expressions with a value",
    citation=(
        "Aho, Lam, Sethi and Ullman (2006), Compilers: principles, techniques, and tools, section 2.2 (the grammar of"
        " expressions)"
    ),
    settings=ArithmeticSettings,
    build=build,
)
