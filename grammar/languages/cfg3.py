"""Deep hierarchies with symbols in levels (Allen-Zhu and Li 2023): the seven published grammars and random ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from truesource.grammar.building import LARGEST_SEED, generator, grammar_of
from truesource.grammar.languages import Language, LanguageSettings, Numbers
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.settings import DEFAULT_SEED

LONGEST = 1_000_000  #: tokens of the longest string
#: rules of the published grammars; 1, 2 and 3 are words
PUBLISHED = {
    "b": """
        22 -> 21 20 | 20 19
        19 -> 16 17 18 | 17 18 16
        20 -> 17 16 18 | 16 17
        21 -> 18 16 | 16 18 17
        16 -> 15 13 | 13 15 14
        17 -> 14 13 15 | 15 13 14
        18 -> 15 14 13 | 14 13
        13 -> 11 12 | 12 11
        14 -> 11 10 12 | 10 11 12
        15 -> 12 11 10 | 11 12 10
        10 -> 7 9 8 | 9 8 7
        11 -> 8 7 9 | 7 8 9
        12 -> 8 9 7 | 9 7 8
        7 -> 3 1 | 1 2 3
        8 -> 3 2 | 3 1 2
        9 -> 3 2 1 | 2 1""",
    "i": """
        22 -> 19 19 20 | 21 20 19
        19 -> 18 16 18 | 16 16
        20 -> 17 16 17 | 18 18
        21 -> 16 16 18 | 18 17
        16 -> 13 13 | 14 14
        17 -> 15 15 | 15 14
        18 -> 14 15 13 | 14 15
        13 -> 12 11 | 10 12 11
        14 -> 10 10 10 | 10 10
        15 -> 11 11 10 | 11 10 12
        10 -> 8 7 7 | 9 9
        11 -> 7 7 7 | 7 7 8
        12 -> 7 9 9 | 8 7
        7 -> 3 1 2 | 2 3 1
        8 -> 1 1 | 2 2
        9 -> 1 1 3 | 1 2""",
    "h": """
        22 -> 20 20 21 | 19 21
        19 -> 16 17 | 18 17
        20 -> 18 16 | 17 16
        21 -> 17 17 18 | 17 18 17
        16 -> 14 13 | 15 13
        17 -> 13 14 | 15 13 15
        18 -> 15 13 13 | 15 14 14 | 14 15 15
        13 -> 12 11 | 11 10
        14 -> 10 12 12 | 10 10 | 12 12 10
        15 -> 10 12 | 11 11 10
        10 -> 8 7 9 | 9 7 | 8 8
        11 -> 8 7 7 | 7 7 | 7 9 9
        12 -> 7 9 | 8 7 | 9 8
        7 -> 2 3 2 | 1 2 3 | 1 3 1
        8 -> 1 2 | 3 3 1 | 1 3
        9 -> 2 1 3 | 1 3 3""",
    "g": """
        22 -> 19 20 | 20 20 19 | 20 19 21
        19 -> 17 17 16 | 18 17 16 | 18 16 17
        20 -> 16 17 | 18 18 | 16 17 17
        21 -> 16 16 | 16 16 18 | 18 16
        16 -> 14 13 13 | 13 14 | 13 13
        17 -> 14 13 14 | 14 15 13 | 15 14
        18 -> 15 13 | 15 15 | 14 13 15
        13 -> 10 12 | 11 11 11 | 11 11
        14 -> 11 12 | 10 11 10 | 10 10
        15 -> 10 11 | 12 10 10 | 12 11
        10 -> 8 8 8 | 7 7 7 | 7 7
        11 -> 8 8 9 | 9 7 | 8 9 7
        12 -> 7 9 | 7 8 | 9 9 9
        7 -> 2 3 1 | 1 1 | 2 2
        8 -> 1 3 2 | 1 3 | 3 3 1
        9 -> 2 3 3 | 2 3 | 2 1""",
    "f": """
        22 -> 20 21 | 20 19 21 | 21 19 19 | 20 20
        19 -> 18 16 18 | 17 18 | 18 18
        20 -> 16 16 | 16 17 | 17 16 18
        21 -> 18 17 | 17 16 | 16 17 18 | 16 18
        16 -> 15 15 | 13 15 13 | 14 13 | 14 14
        17 -> 15 14 13 | 14 15 | 15 14
        18 -> 14 15 13 | 15 13 13 | 13 15
        13 -> 11 12 | 12 11 12 | 10 12 11
        14 -> 10 12 | 12 10 12 | 12 11 | 10 12 12
        15 -> 10 11 11 | 11 11 10 | 10 10 | 12 12 11
        10 -> 8 9 9 | 9 7 9 | 7 9 9
        11 -> 8 8 | 9 7 | 9 7 7
        12 -> 7 9 7 | 9 8 | 8 8 9
        7 -> 2 2 1 | 3 2 2 | 3 1 2 | 3 2
        8 -> 3 1 1 | 1 2 | 3 3 1
        9 -> 1 2 1 | 3 3 | 1 1""",
    "j": """
        25 -> 22 22 | 23 22 | 24 23 24
        22 -> 19 20 | 19 19 21 | 20 19 19
        23 -> 21 19 20 | 21 20 | 19 20 20
        24 -> 19 19 | 20 21 19 | 19 21 21
        19 -> 17 17 16 | 16 18 18 | 16 17
        20 -> 17 17 17 | 18 18 | 18 17 18
        21 -> 18 16 | 16 17 17 | 16 18 16
        16 -> 14 15 | 13 15 | 15 15
        17 -> 14 14 | 15 15 15 | 15 14
        18 -> 14 13 15 | 13 13 14 | 13 14
        13 -> 10 12 | 12 10 | 11 11
        14 -> 10 11 | 12 11 10 | 10 11 11
        15 -> 11 12 12 | 10 10 | 11 12
        10 -> 7 7 9 | 8 7 | 9 8
        11 -> 7 8 8 | 9 9 | 8 8
        12 -> 7 7 8 | 8 7 7 | 9 8 8
        7 -> 1 2 | 2 2 | 3 3 2
        8 -> 3 1 | 2 3 | 1 1 2
        9 -> 3 2 1 | 1 3 | 3 2""",
    "k": """
        25 -> 22 23 | 24 24 | 24 23
        22 -> 21 19 | 21 20 20 | 21 21 | 19 21
        23 -> 20 21 20 | 20 21 21 | 20 20 | 19 20
        24 -> 21 20 | 20 21 | 19 19 21
        19 -> 17 18 16 | 18 16 | 18 16 18 | 18 18 17
        20 -> 17 17 17 | 16 18 | 17 17 16 | 18 17 16
        21 -> 18 17 | 16 18 16 | 17 16 16 | 17 18 18
        16 -> 15 14 | 14 15 | 15 14 15 | 14 13 13
        17 -> 14 15 14 | 15 13 13 | 15 15
        18 -> 14 14 | 15 13 | 13 14 14
        13 -> 10 12 12 | 11 11 12 | 12 12
        14 -> 10 11 | 10 11 11 | 11 10 10 | 11 11
        15 -> 12 11 | 10 10 | 11 12
        10 -> 7 7 | 8 8 | 9 9 7 | 7 9 7
        11 -> 8 7 9 | 7 7 7 | 7 8 7
        12 -> 7 8 | 8 8 7 | 9 7 9 | 8 9
        7 -> 3 3 | 1 3 1 | 2 1
        8 -> 2 3 | 1 1 2 | 3 1 | 1 2 2
        9 -> 1 3 3 | 2 2 | 1 1 1 | 3 2 3""",
}


class Cfg3Settings(LanguageSettings):
    """Parameters of a grammar with symbols in levels; a published grammar has no other parameters."""

    published: Literal["b", "i", "h", "g", "f", "j", "k"] | None = Field(
        None, description="Published grammar in place of a random one: b, i, h, g, f, j or k."
    )
    levels: int = Field(5, ge=2, le=20, description="Number of levels, from the start symbol down to the words.")
    symbols: int = Field(3, ge=1, le=1000, description="Number of symbols of each lower level, and of words.")
    degree: Numbers = Field((2,), description="Number of rules of a symbol: 1 to 100, or several to choose from (2+3).")
    lengths: Numbers = Field((2, 3), description="Children of a rule: 2 to 10, or several to choose from (2+3).")
    distinct: bool = Field(False, description="Whether the children of a rule are distinct.")
    seed: int = Field(DEFAULT_SEED, ge=0, le=LARGEST_SEED, description="Seed of the rules.")

    @field_validator("degree")
    @classmethod
    def _check_degree(cls, degree: tuple[int, ...]) -> tuple[int, ...]:
        return _within(degree, 1, 100)

    @field_validator("lengths")
    @classmethod
    def _check_lengths(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        return _within(lengths, 2, 10)

    @model_validator(mode="before")
    @classmethod
    def _refuse_settings_of_a_published_grammar(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and values.get("published") is not None and len(values) > 1:
            others = ", ".join(sorted(values.keys() - {"published"}))
            raise ValueError(f"the rules of a published grammar are fixed; remove {others}")
        return values

    @model_validator(mode="after")
    def _check_rules_exist(self) -> Self:
        n, children = self.symbols, set(self.lengths)
        if self.distinct and max(children) > n:
            raise ValueError(f"{n} symbols cannot be {max(children)} distinct children; choose fewer or distinct=false")
        possible = sum(math.perm(n, length) if self.distinct else n**length for length in children)
        if max(self.degree) > possible:
            raise ValueError(
                f"{n} symbols allow only {possible} distinct rules of these lengths; choose a lower degree"
            )
        if n > min(self.degree) * min(children):
            raise ValueError(
                f"the start symbol has as few as {min(self.degree) * min(children)} children in all its rules, but"
                f" {n} symbols below it; choose fewer symbols or a higher degree"
            )
        if max(children) ** (self.levels - 1) > LONGEST:
            raise ValueError(f"strings have up to {max(children) ** (self.levels - 1):,} tokens; choose fewer levels")
        return self

    @model_serializer(mode="wrap")
    def _fixed_rules_have_no_settings(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {"published": self.published} if self.published else dump(self)

    def n_rules(self) -> int:
        """Return the number of rules: the published ones; else an upper bound in binary rules, and the words."""
        if self.published:
            rules = [rule for _, alternatives in published_rules(self.published) for rule in alternatives]
            return sum(len(rule) - 1 for rule in rules) + 3
        return (1 + self.symbols * (self.levels - 2)) * max(self.degree) * (max(self.lengths) - 1) + self.symbols


def _within(numbers: tuple[int, ...], low: int, high: int) -> tuple[int, ...]:
    if not numbers or not all(low <= number <= high for number in numbers):
        raise ValueError(f"choose one or more integers from {low} to {high}, joined by +")
    return numbers


Rules = Iterator[tuple[int, list[tuple[int, ...]]]]


def published_rules(name: str) -> Rules:
    """Return each symbol and the children of its rules, from the start symbol down."""
    for line in PUBLISHED[name].split("\n")[1:]:
        parent, rules = line.split("->")
        yield int(parent), [tuple(map(int, rule.split())) for rule in rules.split("|")]


def drawn_rules(settings: Cfg3Settings) -> Rules:
    """Return random rules as in `published_rules`, with numbers; words are 1 and up, then the symbols of each level."""
    rng = generator(settings.seed, 4)
    n = settings.symbols
    for level in range(settings.levels - 1, 0, -1):
        n_parents = 1 if level == settings.levels - 1 else n
        first = (level - 1) * n + 1
        for i, rules in enumerate(_draw_level(rng, n_parents, settings)):
            yield level * n + 1 + i, [tuple(first + child for child in rule) for rule in rules]


def _draw_level(rng: np.random.Generator, n_parents: int, settings: Cfg3Settings) -> list[list[list[int]]]:
    """Return the rules of each symbol of one level, as numbers of the symbols below."""
    n = settings.symbols
    result: list[list[list[int]]] = []
    for _ in range(n_parents):
        rules: dict[tuple[int, ...], None] = {}
        degree = rng.choice(settings.degree)
        while len(rules) < degree:
            rules[tuple(rng.choice(n, rng.choice(settings.lengths), replace=not settings.distinct).tolist())] = None
        result.append([list(rule) for rule in rules])
    places = [(rule, i) for rules in result for rule in rules for i in range(len(rule))]
    uses = Counter(rule[i] for rule, i in places)
    for unused in sorted(set(range(n)) - uses.keys()):
        free = [(rule, i) for rule, i in places if uses[rule[i]] > 1]
        rule, i = free[rng.integers(len(free))]
        uses[rule[i]] -= 1
        rule[i] = unused
        uses[unused] = 1
    return result


def build(settings: Cfg3Settings) -> GrammarRules:
    """Build the grammar: symbols rewrite to the level below, the lowest to words; a symbol's rules are equiprobable.

    A random grammar has one start symbol and, on each level below, ``symbols`` of them. The rules of a symbol are
    distinct: their number is drawn uniformly from ``degree``; for each, the number of children uniformly from
    ``lengths``, then the children uniformly (without replacement if ``distinct``), repeated if the symbol already has
    that rule. Each symbol that no rule of the level above uses then replaces a child drawn uniformly from all children
    of symbols that occur more than once, so that every symbol is used.

    Symbols: ``N`` and a number, as in the publication.
    """
    rules = list(published_rules(settings.published) if settings.published else drawn_rules(settings))
    names = {parent: f"N{parent}" for parent, _ in rules}
    return grammar_of(
        (
            (names[parent], [names.get(child, str(child)) for child in children], 1.0 / len(alternatives))
            for parent, alternatives in rules
            for children in alternatives
        ),
        start=names[rules[0][0]],
    )


LANGUAGE = Language(
    title="deep hierarchies of symbols in levels, published and random",
    tests="long-range structure that requires dynamic programming to parse",
    citation=(
        "Allen-Zhu and Li (2023), Physics of Language Models: Part 1, Learning hierarchical language structures,"
        " arXiv:2305.13673"
    ),
    settings=Cfg3Settings,
    build=build,
    presets={f"cfg3{name}": {"published": name} for name in PUBLISHED},
)
