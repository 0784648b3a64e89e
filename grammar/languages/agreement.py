"""Agreement of subject and verb across nouns of either number (Linzen et al. 2016; Marvin and Linzen 2018)."""

from __future__ import annotations

from pydantic import Field

from truesource.grammar.building import NUMBERS, Rule, grammar_of, nouns_and_verbs, words, zipf
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules


class AgreementSettings(LanguageSettings):
    """Parameters of sentences whose subject and verb agree."""

    between: int = Field(4, ge=0, le=100_000, description="Maximum number of nouns between the subject and its verb.")
    more: float = Field(0.5, ge=0.0, le=1.0, description="Probability of one more noun between, below the maximum.")
    opposite: float = Field(
        0.5, ge=0.0, le=1.0, description="Probability that such a noun differs in number from the subject."
    )
    relative: float = Field(
        0.3, ge=0.0, le=1.0, description="Probability of a relative clause rather than a preposition."
    )
    plural: float = Field(0.5, ge=0.0, le=1.0, description="Probability of a plural subject.")
    nouns: int = Field(50, ge=1, le=100_000, description="Number of nouns, each singular and plural.")
    verbs: int = Field(20, ge=1, le=100_000, description="Number of verbs, each singular and plural.")
    prepositions: int = Field(5, ge=1, le=100_000, description="Number of prepositions.")
    zipf: float = Field(1.0, ge=0.0, le=5.0, description="Exponent of word frequencies by rank; 0 makes them equal.")

    def n_rules(self) -> int:
        """Return the number of rules: four for each number of nouns between, some phrases, and the words."""
        return 4 * self.between + 30 + 2 * self.nouns + 2 * self.verbs + self.prepositions


def build(settings: AgreementSettings) -> GrammarRules:
    """Build sentences of a subject, its modifiers, and a verb that agrees with the subject in number.

    Each modifier adds one noun: in a prepositional phrase (``prep2 the noun5s``), or as the subject of a relative
    clause whose verb agrees with it (``that the noun5s verb3``). Their number is geometric, truncated at the maximum. A
    noun between is an *attractor* if its number is opposite to the subject's, independently for each noun.

    At the verb of the sentence every verb of the wrong number has probability 0. If there are fewer nouns between than
    the maximum, verbs of the right number have total probability ``1 - more``, else 1.

    Symbols: ``NP-sg``, the subject; ``Mods-sg-i``, modifiers of a singular subject from the i-th on.
    """
    more, between = settings.more, settings.between
    rules: list[Rule] = nouns_and_verbs(settings.nouns, settings.verbs, settings.zipf)
    rules += words("P", "prep", "", zipf(settings.prepositions, settings.zipf))
    for number, share in zip(NUMBERS, (1.0 - settings.plural, settings.plural), strict=True):
        subject, modifier, verb = ("the", f"N-{number}"), f"Mod-{number}", f"V-{number}"
        rules.append(("S", (f"NP-{number}", verb), share))
        rules.append((f"NP-{number}", subject, 1.0 - more if between else 1.0))
        if between:
            rules.append((f"NP-{number}", (*subject, f"Mods-{number}-1"), more))
        for i in range(1, between):
            rules.append((f"Mods-{number}-{i}", (modifier,), 1.0 - more))
            rules.append((f"Mods-{number}-{i}", (modifier, f"Mods-{number}-{i + 1}"), more))
        rules.append((f"Mods-{number}-{between}", (modifier,), 1.0))
        for other in NUMBERS:
            p = 1.0 - settings.opposite if other == number else settings.opposite
            rules.append((modifier, ("P", "the", f"N-{other}"), (1.0 - settings.relative) * p))
            rules.append((modifier, ("that", "the", f"N-{other}", f"V-{other}"), settings.relative * p))
    return grammar_of(rules, start="S")


LANGUAGE = Language(
    title="agreement of subject and verb across other nouns",
    tests="number agreement across attractors",
    citation=(
        "Linzen, Dupoux and Goldberg (2016), Assessing the ability of LSTMs to learn syntax-sensitive dependencies,"
        " TACL; Marvin and Linzen (2018), Targeted syntactic evaluation of language models, EMNLP"
    ),
    settings=AgreementSettings,
    build=build,
)
