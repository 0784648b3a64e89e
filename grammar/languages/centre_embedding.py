"""Relative clauses nested in the centre, or one after the other on the right, with the same distribution of lengths."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.grammar.building import NUMBERS, Rule, grammar_of, nouns_and_verbs
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules


class CentreEmbeddingSettings(LanguageSettings):
    """Parameters of sentences with relative clauses."""

    branching: Literal["centre", "right"] = Field(
        "centre", description="Position of relative clauses: inside each other (centre), or after each other (right)."
    )
    depth: int = Field(5, ge=0, le=100_000, description="Maximum number of relative clauses.")
    more: float = Field(0.7, ge=0.0, le=1.0, description="Probability of one more relative clause, below the maximum.")
    plural: float = Field(0.5, ge=0.0, le=1.0, description="Probability that a noun is plural.")
    nouns: int = Field(50, ge=1, le=100_000, description="Number of nouns, each singular and plural.")
    verbs: int = Field(20, ge=1, le=100_000, description="Number of verbs, each singular and plural.")
    zipf: float = Field(1.0, ge=0.0, le=5.0, description="Exponent of word frequencies by rank; 0 makes them equal.")

    def n_rules(self) -> int:
        """Return the number of rules: ten for each number of clauses, and the words."""
        return 10 * (self.depth + 1) + 1 + 2 * self.nouns + 2 * self.verbs


def build(settings: CentreEmbeddingSettings) -> GrammarRules:
    """Build clauses of a noun and a verb that agrees with it; all but the first are relative clauses with ``that``.

    ``centre``: a clause is between the noun and the verb of the clause around it, ``N1 that N2 that N3 V3 V2 V1``.
    ``right``: each clause follows the previous one, ``N1 V1 N2 that V2 N3 that V3``.

    The number of relative clauses is geometric, truncated at the maximum. A sentence with j of them has 3j + 2 tokens
    in both languages; the sentence with the same clauses in the other order has the same probability in the other
    language, so both have the same lengths, word frequencies and entropy.

    Symbols: ``Clause-i``, the clause with i others around it or before it.
    """
    depth, more, centre = settings.depth, settings.more, settings.branching == "centre"
    rules: list[Rule] = nouns_and_verbs(settings.nouns, settings.verbs, settings.zipf)
    for i in range(depth + 1):
        for number, share in zip(NUMBERS, (1.0 - settings.plural, settings.plural), strict=True):
            noun, verb, next_clause = f"N-{number}", f"V-{number}", f"Clause-{i + 1}"
            short = (noun, verb) if centre or i == 0 else (noun, "that", verb)
            longer = (noun, "that", next_clause, verb) if centre else (*short, next_clause)
            rules.append((f"Clause-{i}", short, share * (1.0 - more if i < depth else 1.0)))
            if i < depth:
                rules.append((f"Clause-{i}", longer, share * more))
    return grammar_of(rules, start="Clause-0")


LANGUAGE = Language(
    title="relative clauses nested in the centre, or on the right",
    tests="memory of nested dependencies, compared with local ones of equal lengths and words",
    citation=(
        "Chomsky and Miller (1963), Introduction to the formal analysis of natural languages; Karlsson (2007),"
        " Constraints on multiple center-embedding of clauses, Journal of Linguistics"
    ),
    settings=CentreEmbeddingSettings,
    build=build,
)
