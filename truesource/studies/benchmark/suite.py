"""A suite of the benchmark: its languages, its budget of training and what it measures on, in one YAML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from truesource.generator.objectives import OBJECTIVES
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder, digest_json
from truesource.grammar.support.records import explain
from truesource.grammar.support.settings import Settings, field_description
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.model_registry import completed, settings_class
from truesource.lmtrain.references import is_own
from truesource.run.models import ModelEntry, given_settings, plain_name
from truesource.run.reading import read_settings
from truesource.studies.benchmark.results import REFERENCES, WINDOWS

FOLDER = "benchmark"  #: of the suites, in the data that come with truesource
DIGITS = 12  #: of the digest of a suite
ALL = "all"  #: name of all baselines of a suite
TRAINED = "trained elsewhere"  #: in place of an architecture, of models that the benchmark does not train
CHECKPOINT_EVERY = 100  #: steps
#: settings that are the same for all models of a suite
FIXED = {
    "model": ("name", "tokenizer", "vocab_size", "min_count", "max_positions"),
    "training": (
        *("epochs", "max_steps", "max_seconds", "batch_tokens", "batch_sentences", "accumulation"),
        *("eval_every", "eval_sentences", "checkpoint_every", "snapshots", "snapshot_every", "snapshots_per_doubling"),
    ),
}


class SuiteLanguage(Settings):
    """A language of a suite, and the lengths of its strings."""

    language: str = Field(description="Language with its settings, such as dyck:k=8,depth=5.")
    kind: str = Field(description="Kind of the language, in a few words.")
    tests: str = Field(description="What a model must be able to do, in a sentence without its full stop.")
    lengths: str = Field(description="Lengths of the strings of training and test, in words, such as 1..40.")
    longer: str | None = Field(None, description="Lengths of strings longer than the training strings, if any.")

    @property
    def range(self) -> LengthRange:
        """Lengths of the strings of training and test."""
        return _range(self.lengths)

    @property
    def longer_range(self) -> LengthRange | None:
        """Lengths of the longer strings; None if there are none."""
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
    lengths = LengthRange.parse(written)
    if lengths is None:
        raise ValueError("a language of a suite has a range of lengths, such as 1..40")
    return lengths


class TestSizes(Settings):
    """The sizes of the texts that models are measured on, of each language."""

    dev: int = Field(ge=10, description="Number of strings on which the learning curve is measured.")
    test: int = Field(ge=20, description="Number of test strings.")
    longer: int = Field(ge=20, description="Number of test strings that are longer than the training strings.")
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
        """Digest of all that decides results, hexadecimal; descriptions of languages and baselines do not."""
        return self.digest_of(*self.languages)

    def digest_of(self, *languages: str) -> str:
        """Return the digest of the settings that determine results of these languages."""
        values = self.model_dump(mode="json")
        decides = {key: values[key] for key in ("seed", "training", "sizes")}
        determining = {
            name: {key: value for key, value in values["languages"][name].items() if key not in ("kind", "tests")}
            for name in languages
        }
        return digest_json({**decides, "languages": determining})[:DIGITS]


def suites() -> dict[str, Path]:
    """Return the suites that come with truesource, by name."""
    return {path.stem: path for path in sorted((data_folder() / FOLDER).glob("*.yaml"))}


def load_suite(name: str) -> Suite:
    """Return a suite by its name, or from a custom YAML file.

    Raises:
        InputError: there is no such suite, or a key or value is wrong; the message names the key.
    """
    available = suites()
    path = available.get(name, Path(name))
    if not path.is_file():
        raise InputError(
            f"there is no suite {name!r}; there are {', '.join(available)}, or name a YAML file", code="unknown-suite"
        )
    values: Mapping[str, Any] = read_settings(path, None)
    try:
        return Suite(**values)
    except ValidationError as error:
        raise InputError(explain(error, model=Suite), path) from error


@dataclass(frozen=True)
class Candidate:
    """A model of a benchmark: an architecture, and its changes of the suite's preset."""

    name: str
    architecture: str  #: a name, a reference to custom code, one of `REFERENCES`, or `TRAINED`
    model: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    base: Path | None = None  #: folder that relative files of code start from; None: the working folder
    folder: Path | None = None  #: of a model trained elsewhere, or with one for each language; None: trained here

    @property
    def trained(self) -> bool:
        """True if the benchmark trains it, or counts for it, on the corpora."""
        return self.architecture not in REFERENCES and self.folder is None

    @property
    def settings(self) -> dict[str, object]:
        """The settings that were chosen, for the file of results."""
        return {"model": dict(self.model), "training": dict(self.training)}

    def by_objective(self) -> list[Candidate]:
        """Return one candidate for each objective of a reference, windows for causal models only."""
        if self.trained or self.folder is not None:
            return [self]
        objectives = OBJECTIVES[:1] if self.architecture in WINDOWS else OBJECTIVES
        return [replace(self, model={"objective": objective}) for objective in objectives]

    def folder_of(self, language: str, *, alone: bool) -> Path:
        """Return the folder of the model that was trained on a language.

        Args:
            language: name in the suite.
            alone: it is the only one that is measured, so the folder may be the model's own.

        Raises:
            InputError: there is no model.
        """
        assert self.folder is not None
        if (self.folder / language / "config.json").is_file():
            return self.folder / language
        if not (self.folder / "config.json").is_file():
            raise InputError(
                f"{self.name}: there is no model of the language {language}; expecting a folder {language} with one",
                self.folder,
                code="missing",
            )
        if not alone:
            raise InputError(
                f"{self.name} is one model, which was trained on one language; name the language with --languages",
                self.folder,
                code="several-languages",
            )
        return self.folder

    def resolve(self, suite: Suite, language: SuiteLanguage) -> tuple[ModelConfig, TrainConfig | None]:
        """Return the full settings on a language; custom code is imported, and named with its digest.

        Raises:
            InputError: a setting is unknown or the same for all models of a suite, or the code cannot be used.
        """
        for section, fixed in FIXED.items():
            for key in getattr(self, section):
                if key in fixed:
                    raise InputError(
                        f"{self.name}: {section}.{key} is the same for all models of a suite; leave it out",
                        code="fixed-setting",
                    )
        try:
            kind = settings_class(self.architecture)
        except ValueError as error:
            raise InputError(str(error), code="model-settings") from error
        model = {"architecture": self.architecture, **self.model}
        if "max_positions" in kind.model_fields and not is_own(self.architecture):
            model["max_positions"] = language.longest + 2
        model |= {"min_count": suite.training.min_count}
        budget = suite.training
        training = {
            "epochs": 1.0,
            "batch_tokens": budget.batch_tokens,
            "eval_every": max(1, budget.tokens // (budget.batch_tokens * budget.points)),
            "eval_sentences": suite.sizes.dev,
            "checkpoint_every": CHECKPOINT_EVERY,
            **self.training,
        }
        if kind.counts:
            training = dict(self.training)
        try:
            entry = ModelEntry(name=self.name, preset=budget.preset, model=model, training=training)
            shape, settings = entry.resolve(self.base)
        except ValueError as error:
            text = explain(error) if isinstance(error, ValidationError) else str(error)
            raise InputError(f"{self.name}: {text}", code="model-settings") from error
        shape = completed(shape)
        if shape.longest is not None and shape.longest < language.range.high + 2:
            raise InputError(
                f"{self.name} reads {shape.longest} tokens at most, but strings have up to {language.range.high} words"
                f" and two marks; raise the limit to {language.range.high + 2}",
                code="too-short",
            )
        return shape, settings


def candidates(suite: Suite, asked: Sequence[str], overrides: Sequence[str], name: str | None) -> list[Candidate]:
    """Return the models that a command asks for.

    Args:
        suite: names of its baselines replace their settings.
        asked: names of baselines, architectures, references to code, ``all`` for every baseline, or ``NAME=FOLDER`` for
            a model that was trained on the corpora.
        overrides: ``model.KEY=VALUE`` and ``training.KEY=VALUE``; for one model.
        name: name of the one model; None: by the suite, or by architecture and settings.

    Raises:
        InputError: there is no such architecture, two models have one name, or settings are given for several.
    """
    references = [each for one in asked for each in (suite.baselines if one == ALL else (one,))]
    if (overrides or name is not None) and len(references) != 1:
        raise InputError("--set and --name are for one model; name one with --model", code="several-models")
    chosen = [_candidate(suite, one, overrides, name) for one in references]
    names = [each.name for each in chosen]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise InputError(f"the model {twice[0]} is asked for twice; name it once", code="repeated-name")
    return [of_one for each in chosen for of_one in each.by_objective()]


def baseline(suite: Suite, name: str) -> Candidate:
    """Return a baseline of a suite.

    Raises:
        InputError: its entry in the suite is wrong.
    """
    entry = dict(suite.baselines[name])
    model = dict(entry.pop("model", {}))
    training = dict(entry.pop("training", {}))
    architecture = str(model.pop("architecture", name))
    if entry:
        raise InputError(f"the baseline {name} of suite {suite.label} has an unknown key {min(entry)!r}")
    return Candidate(name, architecture, model, training)


def _candidate(suite: Suite, asked: str, overrides: Sequence[str], name: str | None) -> Candidate:
    called, is_folder, folder = asked.partition("=")
    if is_folder:
        if overrides:
            raise InputError(f"{called} is trained already, so it takes no settings; leave --set out", code="trained")
        if not Path(folder).is_dir():
            raise InputError(f"{called}: there is no such folder", folder, code="missing")
        return Candidate(name or plain_name(called), TRAINED, folder=Path(folder).resolve())
    if asked in suite.baselines and not overrides:
        entry = baseline(suite, asked)
        return entry if name is None else Candidate(name, entry.architecture, entry.model, entry.training)
    if asked in REFERENCES:
        raise InputError(f"{asked} takes no settings; leave --set out", code="model-settings")
    start = baseline(suite, asked) if asked in suite.baselines else Candidate(asked, asked)
    settings = given_settings(start.architecture, overrides)
    model = {**start.model, **{key: value for key, value in settings["model"].items() if key != "architecture"}}
    candidate = Candidate(name or "model", start.architecture, model, {**start.training, **settings["training"]})
    if name is not None:
        return candidate
    shape = candidate.resolve(suite, next(iter(suite.languages.values())))[0]
    label = plain_name(shape.model_copy(update={"name": None}).label)
    return Candidate(label, candidate.architecture, candidate.model, candidate.training)
