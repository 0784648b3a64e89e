"""Broadcast processes on trees: a state spreads from the root to the leaves, which are the words."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from truesource.grammar.building import Rule, grammar_of
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules

LONGEST = 1_000_000  #: tokens of a string


class BroadcastSettings(LanguageSettings):
    """Parameters of a broadcast process on a complete tree."""

    states: int = Field(2, ge=2, le=1000, description="Number of states of a node, q, and of words.")
    depth: int = Field(4, ge=1, le=19, description="Levels below the root.")
    children: int = Field(2, ge=2, le=10, description="Number of children of a node.")
    flip: float = Field(0.1, ge=0.0, le=1.0, description="Probability that a child's state differs from its parent's.")

    @model_validator(mode="after")
    def _check_length(self) -> Self:
        if self.children**self.depth > LONGEST:
            raise ValueError(f"depth: strings have {self.children**self.depth:,} tokens; choose at most {LONGEST:,}")
        return self

    def n_rules(self) -> int:
        """Return the number of rules: the start symbol, and nodes and edges of each level in binary rules."""
        return self.states * (1 + self.depth * (self.children - 1 + self.states))


def build(settings: BroadcastSettings) -> GrammarRules:
    """Build the process: the root has each state with probability 1/q, a child its parent's with 1 - ``flip``.

    Otherwise a child has one of the other states, uniformly. The words are the states of the leaves from left to right,
    ``children`` ^ ``depth`` of them. Two states make the Ising broadcast process: words at leaves whose nearest common
    ancestor is j levels up have correlation (1 - 2 ``flip``)^(2j). With ``flip=1`` and three states or more, each
    string is the leaves of a proper colouring of the tree, drawn uniformly from all colourings.

    Symbols: ``level.state`` for a node, with the leaves at level 0; ``<level.state`` for a child of such a node, whose
    state is hidden. Words are numbers from 1 on.
    """
    q, other = settings.states, settings.flip / (settings.states - 1)
    rules: list[Rule] = [("S", (f"{settings.depth}.{state}",), 1.0 / q) for state in range(1, q + 1)]
    for level in range(settings.depth, 0, -1):
        below = f"{level - 1}." if level > 1 else ""
        for state in range(1, q + 1):
            node = f"{level}.{state}"
            rules.append((node, (f"<{node}",) * settings.children, 1.0))
            chances = ((to, 1.0 - settings.flip if to == state else other) for to in range(1, q + 1))
            rules += [(f"<{node}", (f"{below}{to}",), chance) for to, chance in chances]
    return grammar_of(rules, start="S")


LANGUAGE = Language(
    title="states that spread from the root of a tree to its leaves",
    tests="how much context generating hierarchical text requires, and the errors of generation with less",
    citation=(
        "Gaitonde, Koehler, Mossel, Shin and Sly (2026), A hierarchical language model with predictable scaling laws"
        " and provable benefits of reasoning, arXiv:2605.13687; Evans, Kenyon, Peres and Schulman (2000), Broadcasting"
        " on trees and the Ising model, Annals of Applied Probability 10(2)"
    ),
    settings=BroadcastSettings,
    build=build,
)
