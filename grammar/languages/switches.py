"""Languages that differ in word order only: six switches reverse some of the rules (White & Cotterell 2021)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import Field, field_validator

from truesource.grammar.building import NUMBERS, Rule, grammar_of, zipf
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules

TENSES = ("past", "pres")
ONSETS, VOWELS = "bdfgklmnprstvz", "aeiou"
STEMS = (len(ONSETS) * len(VOWELS)) ** 2  #: number of distinct stems of two syllables
STRIDE = 2311  #: distance of consecutive stems in a list; coprime to their number
COORDINATED = 0.02  #: probability that an adjective, or a verb without a clause, is coordinated with another
SUBJECT, OBJECT, THAT, WHO, AND = "ze", "lo", "dak", "rul", "nem"
PRONOUNS = {"sg": "em", "pl": "ent"}

Switched = tuple[int, str, tuple[str, ...], float]  #: number of the switch from 1 on, or 0 for none; a weighted rule


class SwitchesSettings(LanguageSettings):
    """Parameters of languages that differ in word order."""

    switches: str = Field(
        "000000", description="Rules to reverse: S, VP, complement clause, PP, adjective, relative clause."
    )
    nouns: int = Field(60, ge=1, le=1000, description="Number of nouns, each singular and plural.")
    verbs: int = Field(25, ge=1, le=1000, description="Verbs of each of three kinds, with two numbers and two tenses.")
    adjectives: int = Field(30, ge=1, le=500, description="Number of adjectives.")
    prepositions: int = Field(6, ge=1, le=100, description="Number of prepositions or postpositions.")
    zipf: float = Field(0.0, ge=0.0, le=5.0, description="Exponent of word frequencies by rank; 0 makes them equal.")

    @field_validator("switches", mode="before")
    @classmethod
    def _six_digits(cls, value: Any) -> Any:
        if not (isinstance(value, str) and re.fullmatch("[01]{6}", value)):
            raise ValueError("write six digits 0 or 1 as a string, such as '011101'")
        return value

    def n_rules(self) -> int:
        """Return the number of rules: one for each word, and rules of phrases, several for long ones."""
        return 2 * self.nouns + 12 * self.verbs + self.adjectives + self.prepositions + 100


def stem(number: int) -> str:
    """Return one of `STEMS` invented stems, such as ``bamu``."""
    first, second = divmod(number * STRIDE % STEMS, len(ONSETS) * len(VOWELS))
    return "".join(ONSETS[i // len(VOWELS)] + VOWELS[i % len(VOWELS)] for i in (first, second))


def phrases() -> Iterator[Switched]:
    """Yield rules of phrases in the order of 000000, with their weights."""
    yield 0, "ROOT", ("S", "."), 1.0
    yield 3, "S-comp", ("S", THAT), 1.0
    yield 0, "Adj", ("Adj", AND, "Adj"), COORDINATED
    for n in NUMBERS:
        yield 1, "S", (f"NP-subj-{n}", f"VP-{n}"), 1.0
        yield 0, f"NP-subj-{n}", (f"NP-{n}", SUBJECT), 1.0
        yield 0, "NP-obj", (f"NP-{n}", OBJECT), 1.0
        yield 4, "PP", (f"NP-{n}", "P"), 1.0
        yield 0, f"NP-{n}", (f"N-{n}",), 1.0
        yield 0, f"NP-{n}", (PRONOUNS[n],), 1.0
        yield 4, f"NP-{n}", ("PP", f"NP-{n}"), 0.2
        yield 5, f"NP-{n}", ("Adj", f"N-{n}"), 1.0
        yield 6, f"NP-{n}", (f"VP-{n}", WHO, f"N-{n}"), 1.0
        for m in NUMBERS:
            yield 0, "NP-pl", (f"NP-{n}", AND, f"NP-{m}"), 0.025
        for t in TENSES:
            verb = f"{t}-{n}"
            yield 0, f"VP-{n}", (f"VI-{verb}",), 0.5
            yield 2, f"VP-{n}", ("NP-obj", f"VT-{verb}"), 0.5
            yield 2, f"VP-{n}", ("S-comp", f"VC-{verb}"), 0.5
            for kind in ("VI", "VT"):
                yield 0, f"{kind}-{verb}", (f"{kind}-{verb}", AND, f"{kind}-{verb}"), COORDINATED


def lexicon(settings: SwitchesSettings) -> Iterator[Rule]:
    """Yield rules of words, with their weights.

    Each stem has ``bamuk``, ``bamukes``, a noun; ``bamum`` with ``i``, ``o``, ``it``, ``ot``, a verb (present singular
    and plural, past singular and plural); ``bamush``, an adjective; ``bamur``, a preposition.
    """
    forms = [(f"N-{n}", f"k{ending}") for n, ending in (("sg", ""), ("pl", "es"))]
    verbs = [
        (f"{t}-{n}", f"m{vowel}{ending}")
        for n, vowel in (("sg", "i"), ("pl", "o"))
        for t, ending in (("pres", ""), ("past", "t"))
    ]
    lists = [
        (settings.nouns, forms, 0.0),
        *(
            (settings.verbs, [(f"{kind}-{form}", ending) for form, ending in verbs], share)
            for kind, share in (("VI", COORDINATED), ("VT", COORDINATED), ("VC", 0.0))
        ),
        (settings.adjectives, [("Adj", "sh")], COORDINATED),
        (settings.prepositions, [("P", "r")], 0.0),
    ]
    first = 0
    for size, endings, coordinated in lists:
        for i, share in enumerate(zipf(size, settings.zipf)):
            for parent, ending in endings:
                yield parent, (stem(first + i) + ending,), share * (1.0 - coordinated)
        first += size


def build(settings: SwitchesSettings) -> GrammarRules:
    """Build one of 64 languages with the same words and the same probabilities of derivations.

    A sentence is a subject and a verb phrase that agree in number. Verbs are intransitive, transitive or take a clause,
    in two tenses. Subjects and objects are marked by a particle. Noun phrases are nouns or pronouns, with an adjective,
    a relative clause on its subject, or prepositional phrases; nouns, verbs and adjectives can be coordinated.

    In ``000000`` the subject is first, and all else comes before what it belongs to: objects and clauses before the
    verb, clauses before the complementiser, noun phrases before the postposition and both before the noun, adjectives
    before nouns, relative clauses before the relativiser and the noun. A 1 reverses the children of the rules of:

    1. S: subject, verb phrase;
    2. VP: object or clause, verb;
    3. complement clause: sentence, complementiser;
    4. PP: noun phrase, postposition; and postpositional phrase, noun phrase;
    5. adjective, noun;
    6. relative clause, relativiser, noun.

    The weights of phrases are from the publication, divided by the sum of each symbol's. The words are our own, and so
    is the share of coordinated adjectives and verbs, which in the publication depends on the vocabulary size.
    """
    rules = [
        (parent, children[::-1] if switch and settings.switches[switch - 1] == "1" else children, weight)
        for switch, parent, children, weight in phrases()
    ]
    rules += lexicon(settings)
    sums: dict[str, float] = {}
    for parent, _, weight in rules:
        sums[parent] = sums.get(parent, 0.0) + weight
    return grammar_of([(parent, children, weight / sums[parent]) for parent, children, weight in rules], start="ROOT")


LANGUAGE = Language(
    title="64 languages that differ in the order of children only",
    tests="which word orders a model learns more easily",
    citation=(
        "White and Cotterell (2021), Examining the inductive bias of neural language models with artificial languages,"
        " ACL-IJCNLP"
    ),
    settings=SwitchesSettings,
    build=build,
    presets={
        "english-order": {"switches": "011101"},
        "japanese-order": {"switches": "000000"},
        "spanish-order": {"switches": "011111"},
    },
)
