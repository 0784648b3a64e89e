"""The configuration of an experiment, and reading it from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from truesource.generator.computing import DEVICE, Dtype
from truesource.generator.objectives import OBJECTIVES, Objective
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.hub_card import checked_license
from truesource.grammar.support.records import NAME_PATTERN, explain
from truesource.grammar.support.settings import DEFAULT_SEED, Settings
from truesource.run.corpus import CorpusConfig
from truesource.run.grammar.config import GrammarConfig
from truesource.run.models import ModelEntry
from truesource.run.reading import read_settings
from truesource.run.treebank.config import TreebankConfig

S = TypeVar("S", bound=Settings)
T = TypeVar("T")
Seed = Annotated[int, Field(ge=0, lt=2**32)]  #: range of seeds in numpy and torch
TAKEN = ("oracle", *(f"oracle-{objective}" for objective in OBJECTIVES))  #: names of the truth in tables and files


class EvaluationConfig(Settings):
    """The choice of measures; keys of evaluators come from `truesource.evaluation.evaluators`."""

    split: str = Field("eval", description="Split of the corpus on which to compare models with the truth.")
    sentences: int | None = Field(None, ge=1, description="Number of sentences to use, from the first (default: all).")
    frame: Literal["default", "paper"] = Field(
        "default", description="Positions that count: all (default), or all but end, first word and <unk> (paper)."
    )
    vocabulary: Literal["common", "full", "own"] | None = Field(
        None,
        description="Words: common (to all models), full (of the truth) or own (default: common, else full).",
    )
    lines: int | None = Field(
        None, ge=0, le=20, description="Also show the best predictors that see 0, 1, ..., N - 1 words."
    )

    def find(self, kind: type[S]) -> S | None:
        """Return the settings of an evaluator; None if it is not requested."""
        values = (getattr(self, name) for name in type(self).model_fields)
        return next((value for value in values if isinstance(value, kind)), None)

    def of(self, kind: type[S]) -> S:
        """Return the settings of a requested evaluator."""
        settings = self.find(kind)
        assert settings is not None
        return settings


class RunConfig(Settings):
    """The configuration of an experiment."""

    advanced: ClassVar = frozenset({"title", "license", "dtype", "threads"})
    name: str = Field(pattern=NAME_PATTERN, description="Name of the run, and of its folder in runs/.")
    title: str | None = Field(None, description="Title of the report.")
    license: str | None = Field(
        None, description="Licence for the cards of corpus and models, such as CC-BY-4.0 (default: of the grammar)."
    )
    seed: Seed = Field(DEFAULT_SEED, description="Random seed of everything except networks with separate seeds.")
    seeds: list[Seed] | None = Field(
        None, min_length=1, description="Train each network once with each of these seeds, instead of seed."
    )
    device: str | None = Field(
        None,
        pattern=DEVICE,
        exclude=True,  # from the inputs of finished stages
        description="Device of networks: auto, cpu, cuda, cuda:1 or mps (default: a CUDA GPU if there is one).",
    )
    dtype: Dtype | None = Field(None, description="Precision of measured networks (default: as saved).")
    threads: int | None = Field(None, ge=1, exclude=True, description="Maximum number of CPU threads (default: all).")
    treebank: TreebankConfig | None = Field(None, description="Trees to induce the grammar from.")
    grammar: GrammarConfig = Field(
        GrammarConfig(), description="Grammar, the exact truth: induced, read from a file, or a known language."
    )
    corpus: CorpusConfig = Field(CorpusConfig(), description="Text to sample from the grammar.")
    models: list[ModelEntry] = Field([], description="Language models to train on the corpus, or to load.")
    evaluation: EvaluationConfig = Field(
        EvaluationConfig(), description="What to measure; a key for each evaluator, true for its defaults."
    )

    @property
    def entries(self) -> list[ModelEntry]:
        """Model entries; with ``seeds``, replicates instead of each network."""
        if self.seeds is None:
            return list(self.models)
        groups = ([m.replicate(seed) for seed in self.seeds] if m.needs_training else [m] for m in self.models)
        return [entry for entries in groups for entry in entries]

    @property
    def objectives(self) -> list[Objective]:
        """Objectives that the oracle is scored for: causal and masked, and any order if a model is trained so."""
        filled = any(not model.loaded and model.fills_gaps for model in self.models)
        return [objective for objective in OBJECTIVES if filled or objective != "any-order"]

    @field_validator("license")
    @classmethod
    def _license_is_an_identifier(cls, name: str | None) -> str | None:
        return None if name is None else checked_license(name)

    @field_validator("seeds")
    @classmethod
    def _seeds_differ(cls, seeds: list[int] | None) -> list[int] | None:
        if twice := repeated(seeds or []):
            raise ValueError(f"{twice[0]} is given twice; remove one")
        return seeds

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [entry.name for entry in self.entries]
        if twice := repeated(names):
            why = "" if twice[0] in repeated([model.name for model in self.models]) else ", with the seeds"
            raise ValueError(f"models: two are called {twice[0]}{why}; rename one")
        if taken := [name for name in names if name in TAKEN]:
            raise ValueError(f"models: {taken[0]} is a name of the truth; rename the model")
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if (self.grammar.method in ("file", "language")) == (self.treebank is not None):
            raise ValueError(
                "give a treebank to induce from, or else grammar: {language: NAME} or grammar: {method: file}, not both"
            )
        if self.evaluation.split not in self.corpus.splits:
            raise ValueError(f"evaluation.split {self.evaluation.split!r} is not among the splits of the corpus")
        if not all(model.loaded for model in self.models) and "train" not in self.corpus.splits:
            raise ValueError("corpus.splits needs a split train for the models to learn from")
        order = self.corpus.words_order
        if order is not None and not order.has_grammar and self.evaluation.frame != "default":
            raise ValueError(
                f"evaluation.frame: {self.evaluation.frame} excludes positions, but for text transformed by {order}"
                " only whole sentences have an exact causal probability; use frame: default, or the transform reversal"
            )
        if self.evaluation.lines and (self.evaluation.frame != "default" or (order and not order.has_grammar)):
            raise ValueError("evaluation.lines needs frame: default, and text in the order of a grammar")
        if self.evaluation.vocabulary == "common" and (of_pieces := [m.name for m in self.models if not m.of_words]):
            raise ValueError(
                f"evaluation.vocabulary: common needs full distributions, and {of_pieces[0]} predicts pieces of words;"
                " use full"
            )
        if any(model.oracle_monitor for model in self.models) and "dev" not in self.corpus.splits:
            raise ValueError("corpus.splits needs a split dev for models with oracle_monitor: true")
        for entry in self.models:
            self.require_positions(entry.name, None if entry.loaded else entry.resolve()[0].longest)
        return self

    def require_positions(self, model: str, longest: int | None) -> None:
        """Refuse a model that takes inputs of at most ``longest`` tokens, if the corpus has longer sentences.

        Raises:
            InputError: it has longer sentences.
        """
        lengths = self.corpus.lengths
        if lengths is not None and longest is not None and lengths.high >= longest:
            raise InputError(
                f"the corpus has sentences of up to {lengths.high} words, too long for {model};"
                f" set its model.max_positions to {lengths.high + 2}, which leaves room for <bos> and <eos>"
            )


class EvaluatorKey(Protocol):
    """The part of an evaluator that a configuration needs."""

    @property
    def name(self) -> str:
        """Its key."""

    @property
    def summary(self) -> str:
        """Its purpose, in one line."""

    @property
    def settings(self) -> type[Settings]:
        """The class of the settings under the key."""

    def check(self, config: RunConfig) -> None:
        """Raise `ValueError` if a configuration lacks what the evaluator needs."""


def repeated(values: Sequence[T]) -> list[T]:
    """Return the values that occur more than once."""
    return [value for value, number in Counter(values).items() if number > 1]


def _switched(value: Any) -> Any:
    """Convert ``true`` to an evaluator with its defaults, and ``false`` to none."""
    return {} if value is True else None if value is False else value


class _SwitchSchema:
    """The schema of a value that may also be ``true`` or ``false``."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "boolean"}, handler(core)]}


@cache
def config_class(evaluators: tuple[EvaluatorKey, ...]) -> type[RunConfig]:
    """Build a configuration class with keys for these evaluators."""
    keys: dict[str, Any] = {
        each.name: (
            Annotated[each.settings | None, BeforeValidator(_switched), _SwitchSchema()],
            Field(None, description=each.summary),
        )
        for each in evaluators
    }
    evaluation = create_model("EvaluationConfig", __base__=EvaluationConfig, **keys)
    return create_model("RunConfig", __base__=RunConfig, evaluation=(evaluation, evaluation()))


def load_config(
    path: str | Path, overrides: list[str] | None = None, *, evaluators: Iterable[EvaluatorKey] = ()
) -> RunConfig:
    """Read a YAML configuration.

    Args:
        path: path of the file.
        overrides: ``a.b=value`` with YAML values.
        evaluators: evaluators that it may request.

    Raises:
        InputError: the file cannot be read, or a key or value is wrong; the message names the key.
    """
    return checked_config(read_settings(Path(path), overrides), path, evaluators)


def checked_config(values: Mapping[str, object], path: str | Path, evaluators: Iterable[EvaluatorKey]) -> RunConfig:
    """Build the configuration from values.

    Args:
        values: values by key.
        path: path of their file, for messages.
        evaluators: evaluators that it may request.

    Raises:
        InputError: a key or value is wrong; the message names the key.
    """
    evaluator_keys = tuple(evaluators)
    try:
        config = config_class(evaluator_keys)(**values)
    except ValidationError as error:
        raise InputError(explain(error, model=config_class(evaluator_keys)), path) from error
    for each in evaluator_keys:
        if config.evaluation.find(each.settings) is not None:
            try:
                each.check(config)
            except ValueError as error:
                raise InputError(str(error), path) from error
    return config
