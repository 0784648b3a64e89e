"""a^n b^n."""

from __future__ import annotations

from pydantic import Field

from truesource.grammar.building import grammar_of
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules


class AnbnSettings(LanguageSettings):
    """Parameters of a^n b^n."""

    mean_length: float = Field(20.0, ge=2.1, le=1e6, description="Mean number of words of a string.")

    def n_rules(self) -> int:
        """Return the number of rules: two, one more for their chain, and two words."""
        return 5


def build(settings: AnbnSettings) -> GrammarRules:
    """Build strings of n a, then n b; n is geometric from 1 on.

    P(a^n b^n) = (1 - p) p^(n - 1), where p = 1 - 2 / ``mean_length``.
    """
    end = 2.0 / settings.mean_length
    return grammar_of([("S", ("a", "S", "b"), 1.0 - end), ("S", ("a", "b"), end)], start="S")


LANGUAGE = Language(
    title="a number of a, then as many b",
    tests="counting",
    citation=(
        "Gers and Schmidhuber (2001), LSTM recurrent networks learn simple context-free and context-sensitive"
        " languages, IEEE Transactions on Neural Networks"
    ),
    settings=AnbnSettings,
    build=build,
)
