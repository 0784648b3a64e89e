"""Well-nested brackets of k kinds to a maximum depth (Hewitt et al. 2020)."""

from __future__ import annotations

from pydantic import Field

from truesource.grammar.building import grammar_of
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules


class DyckSettings(LanguageSettings):
    """Parameters of Dyck-(k, m)."""

    k: int = Field(2, ge=1, le=10**9, description="Number of kinds of brackets.")
    depth: int = Field(4, ge=1, le=10**9, description="Maximum number of open brackets, the m of Dyck-(k, m).")

    def n_rules(self) -> int:
        """Return the number of rules: three for each kind at each depth, and two for the start."""
        return 3 * self.k * self.depth + 2


def build(settings: DyckSettings) -> GrammarRules:
    """Build Dyck-(k, m) without the empty string.

    At depth 0 the string ends with probability 1/2, at the maximum depth the open bracket closes, and in between it
    closes with probability 1/2; an opening bracket is of each kind with the same probability. The empty string
    (probability 1/2) is excluded, so the other probabilities are twice those in the publication.

    Symbols: ``pair-d``, a bracket that opens at depth d and closes; ``rest-d-i``, the continuation inside an open
    bracket of kind i, d brackets open, up to its end.
    """
    k, depth = settings.k, settings.depth
    rules: list[tuple[str, tuple[str, ...], float]] = [("S", ("pair-0",), 0.5), ("S", ("pair-0", "S"), 0.5)]
    for d in range(depth):
        rules += [(f"pair-{d}", (f"({i}", f"rest-{d + 1}-{i}"), 1.0 / k) for i in range(1, k + 1)]
    for d in range(1, depth):
        for i in range(1, k + 1):
            rules += [(f"rest-{d}-{i}", (f"{i})",), 0.5), (f"rest-{d}-{i}", (f"pair-{d}", f"rest-{d}-{i}"), 0.5)]
    rules += [(f"rest-{depth}-{i}", (f"{i})",), 1.0) for i in range(1, k + 1)]
    return grammar_of(rules, start="S")


LANGUAGE = Language(
    title="nested brackets of k kinds, to a maximum depth",
    tests="memory of a bounded stack",
    citation=(
        "Hewitt, Hahn, Ganguli, Liang and Manning (2020), RNNs can generate bounded hierarchical languages with optimal"
        " memory, EMNLP"
    ),
    settings=DyckSettings,
    build=build,
)
