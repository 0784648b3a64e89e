"""As many a as b, in any order."""

from __future__ import annotations

import math

from pydantic import Field

from truesource.grammar.building import grammar_of
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules


class BalancedSettings(LanguageSettings):
    """Parameters of strings with as many a as b."""

    mean_length: float = Field(20.0, ge=2.1, le=1e6, description="Mean number of words of a string.")

    def n_rules(self) -> int:
        """Return the number of rules: eight, four more for the chains of the longer ones, and two words."""
        return 14


def away(mean_length: float) -> float:
    """Return the p of `build`: the root below 1/2 of mean_length (1 - 2p)^2 = 2 (1 - p)."""
    u = (1.0 + math.sqrt(1.0 + 4.0 * mean_length)) / (2.0 * mean_length)  # 1 - 2p
    return (1.0 - u) / 2.0


def build(settings: BalancedSettings) -> GrammarRules:
    """Build strings of n a and n b in any order, n from 1 on; all strings of one length are equally probable.

    A string of 2n words has P = (1 - 2p) / (2p) (p (1 - p))^n, and the mean length is 2 (1 - p) / (1 - 2p)^2. The
    difference of the numbers of a and b is a random walk: away from 0, it moves further away with probability p < 1/2
    and back with 1 - p; at 0 the string ends with probability 1 - 2p, or continues with a or b, equally probable. So a
    string that returns to 0 r times has probability (1/2)^r (2p)^(r - 1) (1 - 2p) p^(n - r) (1 - p)^n, in which r
    cancels.

    The grammar is unambiguous. Symbols: ``S``, a string from 0 to 0; ``down`` and ``up``, strings that bring the
    difference back by one, with one b or one a more.
    """
    p = away(settings.mean_length)
    rules: list[tuple[str, tuple[str, ...], float]] = []
    for word, back in (("a", "down"), ("b", "up")):
        rules += [("S", (word, back), 0.5 - p), ("S", (word, back, "S"), p)]
    for word, other, back in (("a", "b", "down"), ("b", "a", "up")):
        rules += [(back, (other,), 1.0 - p), (back, (word, back, back), p)]
    return grammar_of(rules, start="S")


LANGUAGE = Language(
    title="as many a as b, in any order",
    tests="counting up and down",
    citation="Hopcroft and Ullman (1979), Introduction to automata theory, languages, and computation, Addison-Wesley",
    settings=BalancedSettings,
    build=build,
)
