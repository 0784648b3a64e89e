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

    add: float = Field(0.3, ge=0.0, lt=1.0, description="Probability of one more term after each, with + or -.")
    multiply: float = Field(0.3, ge=0.0, lt=1.0, description="Probability of one more factor after each, with * or /.")
    bracket: float = Field(0.3, ge=0.0, lt=1.0, description="Probability that a factor is an expression in brackets.")
    digits: int = Field(10, ge=0, le=10, description="Digits, from 0 on; numbers have one.")
    variables: int = Field(0, ge=0, le=100_000, description="Variables, as probable as digits: x1, x2 and so on.")

    @model_validator(mode="after")
    def _check_expressions_end(self) -> Self:
        if self.digits + self.variables == 0:
            raise ValueError("there is nothing to calculate with; choose at least one digit or variable")
        mean = self.mean_length
        if mean > LARGEST_MEAN:
            many = "infinitely many" if mean == math.inf else f"{mean:,.0f}"
            raise ValueError(
                f"strings have {many} tokens on average, expecting at most {LARGEST_MEAN:,};"
                " choose a lower bracket, add or multiply"
            )
        return self

    @property
    def mean_length(self) -> float:
        """Tokens of a string on average; infinite unless ``bracket < (1 - add) (1 - multiply)``."""
        a, m, b = self.add, self.multiply, self.bracket
        room = (1.0 - a) * (1.0 - m) - b
        return (1.0 + b + m + a * (1.0 - m)) / room if room > 0.0 else math.inf

    def n_rules(self) -> int:
        """Rules of expressions and terms, brackets in rules of two children, and the words."""
        return 20 + self.digits + self.variables


def build(settings: ArithmeticSettings) -> GrammarRules:
    """Expressions of terms of factors: digits, variables, and expressions in brackets. Each string has one derivation.

    ``E -> E + T | E - T`` with probability add/2 each, ``E -> T``; ``T -> T * F | T / F`` with multiply/2 each, ``T ->
    F``; ``F -> ( E )`` with probability ``bracket``, else a digit or variable, all equally probable. Operators of equal
    precedence group to the left.

    With a = add, m = multiply and b = bracket, a string has ``(1 + b + m + a (1-m)) / ((1-a)(1-m) - b)`` tokens on
    average, infinitely many where the denominator is not positive.
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
