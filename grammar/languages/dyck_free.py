"""Well-nested brackets of k kinds to any depth."""

from __future__ import annotations

from pydantic import Field, field_validator

from truesource.grammar.building import grammar_of
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules

LARGEST_P = 0.499999  #: the mean length is then a million tokens


class DyckFreeSettings(LanguageSettings):
    """Parameters of the Dyck language without a maximum depth."""

    k: int = Field(2, ge=1, le=10**9, description="Number of kinds of brackets.")
    p: float = Field(0.4, gt=0.0, lt=1.0, description="Probability of a further pair wherever one can open; below 1/2.")

    @field_validator("p")
    @classmethod
    def _require_finite_mean(cls, p: float) -> float:
        if p > LARGEST_P:
            raise ValueError(
                f"the mean length is 2/(1-2p) tokens, infinite from p = 1/2 on; choose at most {LARGEST_P:g}"
            )
        return p

    def n_rules(self) -> int:
        """Return the number of rules: seven of two children and two words for each kind."""
        return 9 * self.k


def build(settings: DyckFreeSettings) -> GrammarRules:
    """Build the Dyck language of k kinds of brackets, without the empty string.

    With the empty string it is ``S -> (i S i) S`` with probability p/k for each kind i, and the empty string with
    probability 1-p; a string has 2p/(1-2p) tokens on average. Here the empty string is excluded, so the probabilities
    of the others are divided by p, and the mean length is 2/(1-2p).
    """
    k, p = settings.k, settings.p
    rules: list[tuple[str, tuple[str, ...], float]] = []
    for i in range(1, k + 1):
        opens, closes = f"({i}", f"{i})"
        rules += [
            ("S", (opens, closes), (1.0 - p) * (1.0 - p) / k),
            ("S", (opens, closes, "S"), (1.0 - p) * p / k),
            ("S", (opens, "S", closes), p * (1.0 - p) / k),
            ("S", (opens, "S", closes, "S"), p * p / k),
        ]
    return grammar_of(rules, start="S")


LANGUAGE = Language(
    title="nested brackets of k kinds, to any depth",
    tests="memory of a stack without a bound",
    citation="Chomsky and Schützenberger (1963), The algebraic theory of context-free languages",
    settings=DyckFreeSettings,
    build=build,
)
