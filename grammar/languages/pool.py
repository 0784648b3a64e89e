"""Documents of a pool of languages, of which each document has one that must be learned while it is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field, field_validator

from truesource.grammar.building import LARGEST_SEED
from truesource.grammar.documents.document import DocumentProcess
from truesource.grammar.documents.families import pool_of
from truesource.grammar.documents.settings import DocumentSettings
from truesource.grammar.languages import Language, parse, reference
from truesource.grammar.support.settings import DEFAULT_SEED

SEED = "seed"


class PoolSettings(DocumentSettings):
    """Parameters of documents of a pool of languages."""

    family: str = Field(
        "pfsa/mean_length=8",
        description="Languages: references with / for : and comma, several joined by |.",
    )
    languages: int = Field(16, ge=1, le=10**5, description="Languages of each reference without a seed of its own.")
    first: int = Field(DEFAULT_SEED, ge=0, le=LARGEST_SEED, description="Seed of the first of these languages.")
    switch: float = Field(
        0.0, ge=0.0, le=1.0, description="Probability that the language is drawn again before each further string."
    )

    @field_validator("family", mode="before")
    @classmethod
    def _written(cls, value: Any) -> Any:
        """With ``/`` in place of ``:`` and commas, which a reference has between settings."""
        return value.replace(":", "/").replace(",", "/") if isinstance(value, str) else value

    def members(self) -> Iterator[str]:
        """References of all languages."""
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
    """The documents of settings: a language is drawn, each alike, then its strings."""
    return pool_of(list(settings.members()), count=settings.count, switch=settings.switch, name=name)


LANGUAGE = Language(
    title="documents of one of K languages, which must be learned while it is read",
    tests="learning in context, and whether a model knows the languages of its training or their family",
    citation=(
        "Akyürek, Wang, Kim and Andreas (2024), In-context language learning: Architectures and algorithms, ICML"
    ),
    settings=PoolSettings,
    process=process,
)
