"""Documents of a pool of languages; the language of each document must be inferred from its strings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from truesource.grammar.building import LARGEST_SEED
from truesource.grammar.documents.automata import Automata, LinearMoves
from truesource.grammar.documents.document import DocumentProcess, StringCount, WordPredictor
from truesource.grammar.documents.pool import predictor_of
from truesource.grammar.documents.settings import DocumentSettings
from truesource.grammar.documents.truths import TruthsPool
from truesource.grammar.languages import Language, is_process, load_language, parse, reference
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth, load_truth

SEED = "seed"


class PoolSettings(DocumentSettings):
    """Parameters of documents of a pool of languages."""

    family: str = Field(
        "pfsa/mean_length=8",
        description="Languages: references with / for : and comma, several joined by |.",
    )
    languages: int = Field(16, ge=1, le=10**5, description="Number of languages of each reference without a seed.")
    first: int = Field(DEFAULT_SEED, ge=0, le=LARGEST_SEED, description="Seed of the first of these languages.")
    switch: float = Field(
        0.0, ge=0.0, le=1.0, description="Probability that the language is redrawn before each further string."
    )

    @field_validator("family", mode="before")
    @classmethod
    def _written(cls, value: Any) -> Any:
        """Write the reference of a family with ``/`` in place of ``:`` and commas, which separate settings."""
        return value.replace(":", "/").replace(",", "/") if isinstance(value, str) else value

    def members(self) -> Iterator[str]:
        """Yield references of all languages."""
        for part in self.family.split("|"):
            name, slash, rest = part.strip().partition("/")
            title, chosen = parse(name + ":" * bool(slash) + rest.replace("/", ","))
            if SEED in type(chosen).model_fields and SEED not in chosen.model_fields_set:
                yield from (
                    reference(title, chosen.model_copy(update={SEED: self.first + k})) for k in range(self.languages)
                )
            else:
                yield reference(title, chosen)


def process(settings: PoolSettings, name: str) -> DocumentProcess:
    """Return the documents of given settings: a language is drawn uniformly, then its strings."""
    return pool_of(list(settings.members()), count=settings.count, switch=settings.switch, name=name)


def pool_of(
    languages: Sequence[str | Truth],
    *,
    count: StringCount,
    switch: float = 0.0,
    prior: Sequence[float] | None = None,
    name: str | None = None,
) -> DocumentProcess:
    """Return documents whose language, one of several, is unknown to the reader.

    Args:
        languages: K grammars or processes, or references of them.
        count: number of strings of a document.
        switch: P(the language is redrawn) before each string but the first.
        prior: (K,) P(language), divided by their sum; None: uniform.
        name: name in signatures; None: a digest of the languages.

    Raises:
        InputError: there is no language, no two of them share a word, not all strings of one end, or ``prior`` is not
            one number of 0 or more for each language, with a positive sum.
    """
    if not languages:
        raise InputError("this pool has no language; name one or more")
    weight = np.ones(len(languages)) if prior is None else np.asarray(prior, dtype=np.float64)
    if weight.shape != (len(languages),) or not (weight >= 0.0).all() or not 0.0 < weight.sum() < np.inf:
        raise InputError(f"a prior needs a number >= 0 for each of the {len(languages)} languages, not all 0")
    names = [each if isinstance(each, str) else each.identity for each in languages]
    automata = automata_of(languages)
    predictor: WordPredictor
    if automata is not None:
        predictor = predictor_of(names, automata, weight / weight.sum(), switch)
    else:
        truths = [load_truth(each) if isinstance(each, str) else each for each in languages]
        predictor = TruthsPool(names, truths, weight / weight.sum(), switch)
    if name is None:
        digest = hashlib.sha256(repr([names, weight.tolist(), count, switch]).encode()).hexdigest()
        name = f"pool of {len(names)} languages {digest[:8]}"
    return DocumentProcess(name, predictor, count)


def automata_of(languages: Sequence[str | Truth]) -> Automata | None:
    """Return the languages as automata; None unless all are right-linear grammars."""
    automata: list[LinearMoves] = []
    for language in track(languages, "building the languages of a pool", len(languages)):
        if isinstance(language, str):
            rules: object = None if is_process(language) else load_language(language)
        else:
            rules = language
        moves = LinearMoves.of(rules) if isinstance(rules, GrammarRules) else None
        if moves is None:
            return None
        automata.append(moves)
    return Automata.join(automata)


LANGUAGE = Language(
    title="documents of one of K languages, which must be inferred while reading",
    tests="learning in context, and whether a model learns its training languages or their family",
    citation=(
        "Akyürek, Wang, Kim and Andreas (2024), In-context language learning: Architectures and algorithms, ICML"
    ),
    settings=PoolSettings,
    process=process,
)
