"""The random hierarchy model (Cagnetta et al. 2024): hierarchies of equiprobable productions without ambiguity."""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from truesource.grammar.building import LARGEST_SEED, generator, grammar_of
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.settings import DEFAULT_SEED

LONGEST = 1_000_000  #: tokens of a string


class RandomHierarchySettings(LanguageSettings):
    """Parameters of the random hierarchy model; its letters are L, v, m and s."""

    depth: int = Field(4, ge=1, le=19, description="Number of levels of productions, L.")
    symbols: int = Field(8, ge=1, le=10**6, description="Number of symbols of each level, v, and of words.")
    productions: int = Field(4, ge=1, le=10**6, description="Number of productions of a symbol, m.")
    children: int = Field(2, ge=2, le=10, description="Number of children of a production, s.")
    seed: int = Field(DEFAULT_SEED, ge=0, le=LARGEST_SEED, description="Seed of the productions.")

    @model_validator(mode="after")
    def _check_productions_exist(self) -> Self:
        most = self.symbols ** (self.children - 1)
        if self.productions > most:
            raise ValueError(
                f"productions: no two symbols share one, so each has at most symbols^(children-1) = {most:,}"
            )
        if self.children**self.depth > LONGEST:
            raise ValueError(f"depth: strings have {self.children**self.depth:,} tokens; choose at most {LONGEST:,}")
        return self

    def n_rules(self) -> int:
        """Return the number of rules: the start symbol, the productions in binary rules, and the words."""
        return self.symbols * (2 + self.depth * self.productions * (self.children - 1))


def build(settings: RandomHierarchySettings) -> GrammarRules:
    """Build the hierarchy: a top symbol is drawn uniformly; each level rewrites every symbol to the next level.

    Each symbol has m productions of s children, with equal probabilities. The v m productions of a level are drawn
    uniformly without replacement from all v^s, and dealt to its symbols in turn, so no two symbols share one: a string
    has one derivation, and the entropy is ``ln v + ln m (s^L - 1) / (s - 1)``. The symbols of the last level are words.
    Unreachable symbols are removed.

    Symbols: ``level.number``, levels numbered from L at the top; words are numbers.
    """
    n, depth, m = settings.symbols, settings.depth, settings.productions
    rng = generator(settings.seed, 5)
    rules: list[tuple[str, list[str], float]] = [("S", [f"{depth}.{i}"], 1.0 / n) for i in range(1, n + 1)]
    for level in range(depth, 0, -1):
        below = f"{level - 1}." if level > 1 else ""
        for at, children in enumerate(_draw_productions(rng, n * m, settings)):
            rules.append((f"{level}.{at // m + 1}", [f"{below}{child + 1}" for child in children], 1.0 / m))
    return grammar_of(rules, start="S")


def _draw_productions(
    rng: np.random.Generator, number: int, settings: RandomHierarchySettings
) -> list[tuple[int, ...]]:
    """Return distinct sequences of children, drawn uniformly; all possible ones are listed only if most are needed."""
    shape = (settings.symbols,) * settings.children
    possible = settings.symbols**settings.children
    if possible <= 4 * number:
        codes = rng.permutation(possible)[:number]
        return list(zip(*(row.tolist() for row in np.unravel_index(codes, shape)), strict=True))
    result: dict[tuple[int, ...], None] = {}
    while len(result) < number:
        result |= dict.fromkeys(map(tuple, rng.integers(settings.symbols, size=(number, settings.children)).tolist()))
    return list(result)[:number]


LANGUAGE = Language(
    title="random hierarchies of equiprobable productions",
    tests="how much data learning hidden variables requires, level by level",
    citation=(
        "Cagnetta, Petrini, Tomasini, Favero and Wyart (2024), How deep neural networks learn compositional data: the"
        " random hierarchy model, Physical Review X 14, 031001"
    ),
    settings=RandomHierarchySettings,
    build=build,
)
