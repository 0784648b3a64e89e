"""a^n b^n c^n."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from truesource.grammar.building import Move, State, truncated_geometric, walked
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules


class AnbncnSettings(LanguageSettings):
    """Parameters of a^n b^n c^n."""

    longest: int = Field(20, ge=1, le=10**6, description="Largest n.")
    p: float = Field(0.9, gt=0.0, lt=1.0, description="Ratio of the probabilities of n + 1 and n.")

    def n_rules(self) -> int:
        """Return the number of rules: three for each a and b of each n, and for each c; and the words."""
        return 3 * (self.longest * (self.longest + 3)) + 3


def build(settings: AnbncnSettings) -> GrammarRules:
    """Build strings of n a, then n b, then n c; P(n) is in proportion to p^n, n = 1 to ``longest``.

    Symbols are configurations: ``a-3`` after three a, ``b-5-2`` with n = 5 and two b to come, ``c-2`` with two c to
    come.
    """
    more = truncated_geometric(settings.p, settings.longest)

    def moves(state: State) -> Iterator[Move]:
        if state[0] == "a":
            n = state[1]
            yield "a", ("a", n + 1), more[n]
            if n:
                yield "b", ("b", n, n - 1) if n > 1 else ("c", n), 1.0 - more[n]
        elif state[0] == "b":
            _, n, left = state
            yield "b", ("b", n, left - 1) if left > 1 else ("c", n), 1.0
        elif state[1]:
            yield "c", ("c", state[1] - 1), 1.0

    return walked(("a", 0), moves, lambda state: float(state == ("c", 0))).grammar()


LANGUAGE = Language(
    title="a number of a, then as many b, then as many c",
    tests="two counts at once, beyond context-free",
    citation=(
        "Gers and Schmidhuber (2001), LSTM recurrent networks learn simple context-free and context-sensitive"
        " languages, IEEE Transactions on Neural Networks"
    ),
    settings=AnbncnSettings,
    build=build,
)
