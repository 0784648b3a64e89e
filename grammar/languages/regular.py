"""Small regular languages: parity, counting, (ab)* and the Tomita languages (1982)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from truesource.grammar.building import Automaton
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules

BITS = ("0", "1")


@dataclass(frozen=True)
class Acceptor:
    """A finite automaton in which every state can reach an accepting one. It starts in state 0."""

    words: tuple[str, str]
    moves: Sequence[tuple[int | None, int | None]]  #: target of each state for the first word and for the second
    accepting: frozenset[int]


ACCEPTORS = {
    "ab-star": Acceptor(("a", "b"), [(1, None), (None, 0)], frozenset({0})),
    "tomita1": Acceptor(BITS, [(None, 0)], frozenset({0})),
    "tomita2": Acceptor(BITS, [(None, 1), (0, None)], frozenset({0})),
    "tomita3": Acceptor(BITS, [(0, 1), (2, 0), (3, None), (2, 3)], frozenset({0, 1, 3})),
    "tomita4": Acceptor(BITS, [(1, 0), (2, 0), (None, 0)], frozenset({0, 1, 2})),
    "tomita5": Acceptor(BITS, [(1, 2), (0, 3), (3, 0), (2, 1)], frozenset({0})),
    "tomita6": Acceptor(BITS, [(1, 2), (2, 0), (0, 1)], frozenset({0})),
    "tomita7": Acceptor(BITS, [(0, 1), (2, 1), (2, 3), (None, 3)], frozenset({0, 1, 2, 3})),
}
Which = Literal["modular", "ab-star", "tomita1", "tomita2", "tomita3", "tomita4", "tomita5", "tomita6", "tomita7"]


class RegularSettings(LanguageSettings):
    """Parameters of small regular languages."""

    which: Which = Field(
        "modular", description="The language; modular: strings of 0 and 1 with a multiple of modulus 1s."
    )
    modulus: int | None = Field(None, ge=1, le=10_000, description="Modulus of which=modular (default: 2, parity).")
    end: float = Field(0.1, ge=1e-4, le=0.99, description="Probability that a string ends in an accepting state.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.modulus is not None and self.which != "modular":
            raise ValueError(f"modulus applies only to which=modular; remove it from which={self.which}")
        return self

    def acceptor(self) -> Acceptor:
        """Return the automaton of the language."""
        if self.which != "modular":
            return ACCEPTORS[self.which]
        k = self.modulus or 2
        return Acceptor(BITS, [(q, (q + 1) % k) for q in range(k)], frozenset({0}))

    def n_rules(self) -> int:
        """Return the number of rules: two for each transition, and one for each word."""
        states = len(ACCEPTORS[self.which].moves) if self.which != "modular" else self.modulus or 2
        return 4 * states + 2


def build(settings: RegularSettings) -> GrammarRules:
    """Build a regular language whose strings have probabilities by the states of its automaton.

    In an accepting state, the string ends with probability ``end``; otherwise, and in all other states, each word
    with which a string of the language can continue is equally probable. The empty string is excluded: if the first
    state accepts, the probabilities of the others are divided by 1 - ``end``.

    * ``modular``: strings of 0 and 1 in which the number of 1s is a multiple of ``modulus``
    * ``ab-star``: (ab)*
    * ``tomita1``: 1*
    * ``tomita2``: (10)*
    * ``tomita3``: no run of 1s of odd length is followed, at once or later, by a run of 0s of odd length
    * ``tomita4``: no three 0s in a row
    * ``tomita5``: an even number of 0s and an even number of 1s
    * ``tomita6``: the numbers of 0s and of 1s differ by a multiple of 3
    * ``tomita7``: 0*1*0*1*
    """
    acceptor = settings.acceptor()
    n = len(acceptor.moves)
    source, word, target = np.array(
        [(q, w, r) for q, row in enumerate(acceptor.moves) for w, r in enumerate(row) if r is not None]
    ).T
    end = np.zeros(n)
    end[list(acceptor.accepting)] = settings.end
    return Automaton(
        states=[f"q{q}" for q in range(n)],
        words=acceptor.words,
        source=source,
        word=word,
        target=target,
        weight=(1.0 - end[source]) / np.bincount(source)[source],
        end=end,
    ).grammar()


LANGUAGE = Language(
    title="small regular languages: parity, modular counting, (ab)*, Tomita's seven",
    tests="counting, periodicity and finite-state memory",
    citation=(
        "Bhattamishra, Ahuja and Goyal (2020), On the ability and limitations of transformers to recognize formal"
        " languages, EMNLP; Delétang et al. (2023), Neural networks and the Chomsky hierarchy, ICLR; Tomita (1982),"
        " Dynamic construction of finite-state automata from examples using hill-climbing, CogSci"
    ),
    settings=RegularSettings,
    build=build,
    presets={
        "parity": {"which": "modular", "modulus": 2},
        "modular": {"which": "modular", "modulus": 5},
        **{name: {"which": name} for name in ACCEPTORS},
    },
)
