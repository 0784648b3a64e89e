"""a^m b^n c^m d^n: dependencies that cross (Shieber 1985)."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from truesource.grammar.building import Move, State, truncated_geometric, walked
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules


class CrossSerialSettings(LanguageSettings):
    """Parameters of a^m b^n c^m d^n."""

    longest: int = Field(10, ge=1, le=10**6, description="Largest m, and largest n.")
    p: float = Field(0.8, gt=0.0, lt=1.0, description="Ratio of the probabilities of m + 1 and m, and likewise of n.")

    def n_rules(self) -> int:
        """Return the number of rules: three for each b and c of each m and n, and for each a and d; and the words."""
        return 3 * (2 * self.longest * (self.longest + 2)) + 4


def build(settings: CrossSerialSettings) -> GrammarRules:
    """Build strings of m a, n b, m c and n d; m and n are independent, in proportion to p^n, from 1 to ``longest``.

    The first and the third number agree, and the second and the fourth, like verbs with their nouns in Swiss German.

    Symbols are configurations: ``a-2`` after two a, ``b-2-3`` after three b as well, ``c-1-3`` with one c and three d
    to come, ``d-2`` with two d to come.
    """
    more = truncated_geometric(settings.p, settings.longest)

    def moves(state: State) -> Iterator[Move]:
        if state[0] == "a":
            m = state[1]
            yield "a", ("a", m + 1), more[m]
            if m:
                yield "b", ("b", m, 1), 1.0 - more[m]
        elif state[0] == "b":
            _, m, n = state
            yield "b", ("b", m, n + 1), more[n]
            yield "c", ("c", m - 1, n) if m > 1 else ("d", n), 1.0 - more[n]
        elif state[0] == "c":
            _, m, n = state
            yield "c", ("c", m - 1, n) if m > 1 else ("d", n), 1.0
        elif state[1]:
            yield "d", ("d", state[1] - 1), 1.0

    return walked(("a", 0), moves, lambda state: float(state == ("d", 0))).grammar()


LANGUAGE = Language(
    title="m of a, n of b, m of c, n of d",
    tests="dependencies that cross, beyond context-free",
    citation="Shieber (1985), Evidence against the context-freeness of natural language, Linguistics and Philosophy",
    settings=CrossSerialSettings,
    build=build,
)
