"""A suite of the benchmark: its languages, its budget of training and what it measures on, in one YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from truesource.chain.models.config import ModelEntry
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder, digest_json
from truesource.grammar.support.records import explain
from truesource.grammar.support.settings import Settings, field_description
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.run.reading import read_settings

FOLDER = "benchmark"  #: of the suites, in the data that come with truesource
DIGITS = 12  #: of the digest of a suite


class SuiteLanguage(Settings):
    """A language of a suite, and the lengths of its strings."""

    language: str = Field(description="Language with its settings, such as dyck:k=8,depth=5.")
    kind: str = Field(description="Kind of the language, in a few words.")
    tests: str = Field(description="What a model must be able to do, in a sentence without its full stop.")
    lengths: str = Field(description="Lengths of the strings of training and test, in words, such as 1..40.")
    longer: str | None = Field(None, description="Lengths of strings longer than those of training, if there are any.")

    @property
    def range(self) -> LengthRange:
        """Of the strings of training and test."""
        return _range(self.lengths)

    @property
    def longer_range(self) -> LengthRange | None:
        """Of the longer strings."""
        return None if self.longer is None else _range(self.longer)

    @property
    def longest(self) -> int:
        """Most words of any string."""
        return (self.longer_range or self.range).high

    @model_validator(mode="after")
    def _longer_is_longer(self) -> Self:
        longer = self.longer_range
        if longer is not None and longer.low <= self.range.high:
            raise ValueError(f"longer: {self.longer} must begin above {self.range.high}, where lengths end")
        return self


def _range(written: str) -> LengthRange:
    found = LengthRange.parse(written)
    if found is None:
        raise ValueError("a language of a suite has a range of lengths, such as 1..40")
    return found


class TestSizes(Settings):
    """What models are measured on, of each language."""

    dev: int = Field(ge=10, description="Number of strings on which the learning curve is measured.")
    test: int = Field(ge=20, description="Number of test strings.")
    longer: int = Field(ge=20, description="Number of test strings that are longer than those of training.")
    blocks: int = Field(ge=10, description="Groups of test strings, whose sums a file of results holds.")


class SuiteTraining(Settings):
    """The budget of every model, and what it may choose."""

    tokens: int = Field(
        ge=1000, description="Approximate number of training tokens, ends of strings included; each is read once."
    )
    batch_tokens: int = Field(ge=1, description=field_description(TrainConfig, "batch_tokens"))
    points: int = Field(ge=2, description="Number of points of the learning curve.")
    parameters: int = Field(ge=1, description="Maximum number of parameters, without word and position vectors.")
    preset: str = Field("tiny", description=field_description(ModelEntry, "preset"))
    min_count: int = Field(1, ge=1, description=field_description(ModelConfig, "min_count"))
    seeds: list[Annotated[int, Field(ge=0, lt=2**32)]] = Field(
        min_length=1, description="Random seeds of weights and batches."
    )


class Suite(Settings):
    """Languages, budget and measures that all models share."""

    name: str = Field(pattern=r"^[a-z0-9-]+$", description="Name of the suite.")
    version: int = Field(ge=1, description="Version of the suite; it rises whenever results of models change.")
    title: str = Field(description="Title of the table.")
    seed: int = Field(ge=0, lt=2**32, description="Random seed of the corpora.")
    languages: dict[str, SuiteLanguage] = Field(min_length=1, description="Languages by name.")
    training: SuiteTraining = Field(description="The budget of every model.")
    sizes: TestSizes = Field(description="What models are measured on, of each language.")
    baselines: dict[str, dict[str, Any]] = Field(
        {}, description="Models to compare with, by name: entries of models as in truesource run."
    )

    @field_validator("languages")
    @classmethod
    def _names_are_plain(cls, languages: dict[str, SuiteLanguage]) -> dict[str, SuiteLanguage]:
        for name in languages:
            if not name.replace("-", "").isalnum():
                raise ValueError(f"languages: a name has letters, digits and hyphens, got {name!r}")
        return languages

    @property
    def label(self) -> str:
        """Name and version, such as ``tiny-v1``."""
        return f"{self.name}-v{self.version}"

    @property
    def digest(self) -> str:
        """Of all that decides results, hexadecimal; the words that describe languages and the baselines do not."""
        return self.digest_of(*self.languages)

    def digest_of(self, *languages: str) -> str:
        """Of all that decides the results of some languages."""
        values = self.model_dump(mode="json")
        decides = {key: values[key] for key in ("seed", "training", "sizes")}
        kept = {
            name: {key: value for key, value in values["languages"][name].items() if key not in ("kind", "tests")}
            for name in languages
        }
        return digest_json({**decides, "languages": kept})[:DIGITS]


def suites() -> dict[str, Path]:
    """The suites that come with truesource, by name."""
    return {path.stem: path for path in sorted((data_folder() / FOLDER).glob("*.yaml"))}


def load_suite(name: str) -> Suite:
    """A suite by its name, or from a YAML file of one's own.

    Raises:
        InputError: there is no such suite, or a key or value is wrong; the message names the key.
    """
    known = suites()
    path = known.get(name, Path(name))
    if not path.is_file():
        raise InputError(
            f"there is no suite {name!r}; there are {', '.join(known)}, or name a YAML file", code="unknown-suite"
        )
    values: Mapping[str, Any] = read_settings(path, None)
    try:
        return Suite(**values)
    except ValidationError as error:
        raise InputError(explain(error, model=Suite), path) from error
