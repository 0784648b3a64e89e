"""The configuration of a sweep: one YAML file, checked key by key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, ValidationError, field_validator, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from truesource.generator.computing import DEVICE
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import NAME_PATTERN, explain, mistake
from truesource.grammar.support.settings import DEFAULT_SEED, Settings, field_description
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.run.config import EvaluationConfig, RunConfig
from truesource.run.corpus import CorpusConfig
from truesource.run.models import ModelEntry
from truesource.run.named_grammar import ARCHITECTURE, LANGUAGE, TRAINING, reference_of, with_languages
from truesource.run.reading import read_settings

ONE_VOCABULARY = ("tokenizer", "vocab_size", "min_count")  #: settings that all cells share


class EmbeddedGrammar(Settings):
    """A grammar that comes with truesource."""

    embedded: Literal["english"] = Field(description="The embedded English grammar.")


class BaseModelEntry(Settings):
    """Settings that all cells have in common, as in `truesource run`: a preset and what differs from it."""

    preset: str | None = Field(None, description=field_description(ModelEntry, "preset"))
    model: Annotated[dict[str, object], ARCHITECTURE] = Field(
        default_factory=dict, description=field_description(ModelEntry, "model")
    )
    training: Annotated[dict[str, object], TRAINING] = Field(
        default_factory=dict, description=field_description(ModelEntry, "training")
    )

    @model_validator(mode="after")
    def _steps_are_given(self) -> Self:
        if "epochs" in self.training:
            raise ValueError("training: replace epochs by max_steps; all cells take the same number of steps")
        if "max_steps" not in self.training:
            raise ValueError("training: max_steps is missing; all cells take the same number of steps")
        if self.training.get("max_seconds") is not None:
            raise ValueError("training: max_seconds would stop cells at different steps; remove it")
        if "name" in self.model:
            raise ValueError("model: cells are named after their shapes; remove name")
        self.resolve({})
        return self

    def resolve(self, change: Mapping[str, object]) -> tuple[ModelConfig, TrainConfig]:
        """Return the full settings with some of the model changed.

        Raises:
            ValueError: an unknown key or value.
        """
        changed = {**self.model, **change}
        try:
            shape, training = ModelEntry(
                name="cell", preset=self.preset, model=changed, training=self.training
            ).resolve()
        except ValidationError as error:
            raise ValueError(explain(error)) from error
        if training is None:
            raise ValueError(f"{shape.architecture} is not trained in steps; choose a neural network")
        return shape.model_copy(update={"name": None}), training


class AxesConfig(Settings):
    """Values that are varied; every combination is a cell."""

    sentences: list[Annotated[int, Field(ge=1)]] = Field(
        min_length=1, description="Numbers of training sentences, from the first of the train split."
    )
    model: list[dict[str, Any]] | None = Field(
        None, min_length=1, description="Settings of each model that differ from base, such as {dim: 64}."
    )
    layers: list[Annotated[int, Field(ge=1)]] | None = Field(
        None, min_length=1, description="Numbers of layers; short for model: [{layers: 1}, ...]."
    )
    seeds: list[Annotated[int, Field(ge=0, lt=2**32)]] = Field(
        [DEFAULT_SEED], min_length=1, description="Random seeds; each model is trained once with each."
    )

    @field_validator("sentences", "layers", "seeds", "model")
    @classmethod
    def _values_differ(cls, values: list[Any] | None) -> list[Any] | None:
        for i, value in enumerate(values or []):
            if value in (values or [])[:i]:
                raise ValueError(f"{value} is given twice; remove one")
        return values

    @model_validator(mode="after")
    def _one_way_to_vary_models(self) -> Self:
        if self.model is not None and self.layers is not None:
            raise ValueError("model and layers cannot be combined; remove one")
        for change in self.model or []:
            shared = [key for key in (*ONE_VOCABULARY, "architecture") if key in change]
            if shared:
                raise ValueError(f"model: {shared[0]} is the same in all cells; set it in base.model")
        return self

    def shapes(self) -> list[tuple[str | None, dict[str, object]]]:
        """Return the name, if there is one, and the changed settings of each model."""
        if self.layers is not None:
            return [(None, {"layers": layers}) for layers in self.layers]
        if self.model is None:
            return [(None, {})]
        return [(change.get("name"), {k: v for k, v in change.items() if k != "name"}) for change in self.model]


class SweepEvaluation(Settings):
    """Sentences that the cells are compared with the truth on, and how."""

    split: str = Field("eval", description=field_description(EvaluationConfig, "split"))
    sentences: int | None = Field(None, ge=2, description=field_description(EvaluationConfig, "sentences"))
    frame: Literal["default", "paper"] = Field("default", description=field_description(EvaluationConfig, "frame"))
    lines: int | None = Field(None, ge=0, le=20, description=field_description(EvaluationConfig, "lines"))
    replicates: int = Field(1000, ge=100, description="Number of bootstrap samples of seeds and sentences.")


class _GrammarOrLanguage:
    """A grammar that may also be a mapping with a language and its settings."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        text = {"type": "object", "properties": {LANGUAGE: {}}, "required": [LANGUAGE], "additionalProperties": False}
        return {"anyOf": [*handler(core)["anyOf"], with_languages(text, handler)]}


class SweepConfig(Settings):
    """A whole sweep."""

    name: str = Field(pattern=NAME_PATTERN, description="Name of the sweep, and of its folder in runs/.")
    title: str | None = Field(None, description="Title of the report.")
    seed: int = Field(
        DEFAULT_SEED,
        ge=0,
        lt=2**32,
        description="Random seed of the corpus, if it is sampled here, and of the bootstrap.",
    )
    device: str | None = Field(
        None, pattern=DEVICE, exclude=True, description=field_description(RunConfig, "device")
    )  # excluded from what finished work depends on
    threads: int | None = Field(None, ge=1, exclude=True, description=field_description(RunConfig, "threads"))
    grammar: Annotated[str | EmbeddedGrammar, _GrammarOrLanguage()] = Field(
        description="Grammar of the corpus: a file relative to the configuration, or a language such as dyck:k=2."
    )
    corpus: str | CorpusConfig = Field(
        description="Corpus folder relative to the configuration, or what to sample, as in truesource run."
    )
    vocabulary_sentences: int | None = Field(
        None, ge=1, description="Number of train sentences for the vocabulary (default: the most of axes.sentences)."
    )
    base: BaseModelEntry = Field(description="What all models have in common.")
    axes: AxesConfig = Field(description="What is varied; every combination is trained.")
    evaluation: SweepEvaluation = Field(SweepEvaluation(), description="What models are compared with the truth on.")

    @field_validator("grammar", mode="before")
    @classmethod
    def _gather_language(cls, value: Any) -> Any:
        return reference_of(value) if isinstance(value, Mapping) and value.get(LANGUAGE) is not None else value

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        names: dict[str, dict[str, object]] = {}
        models: dict[str, str] = {}
        for name, shape, change in self.shapes():
            if name in names:
                raise ValueError(
                    f"axes.model: {names[name]} and {change} are both called {name}; give one of them a name"
                )
            names[name] = change
            built = shape.with_defaults().model_dump_json()
            if built in models:
                raise ValueError(f"axes.model: {models[built]} and {name} are the same model; remove one")
            models[built] = name
            self._longest_fits(shape)
        if isinstance(self.corpus, CorpusConfig):
            for split in ("train", self.evaluation.split):
                if split not in self.corpus.splits:
                    raise ValueError(f"corpus.splits lacks the split {split}; add it")
            require_sentences(self, self.corpus.splits["train"])
        if self.evaluation.lines and self.evaluation.frame != "default":
            raise ValueError("evaluation.lines needs evaluation.frame: default")
        return self

    def _longest_fits(self, shape: ModelConfig) -> None:
        if isinstance(self.corpus, CorpusConfig) and self.corpus.lengths is not None and shape.longest is not None:
            high = self.corpus.lengths.high
            if high >= shape.longest:
                raise ValueError(
                    f"the corpus has sentences of up to {high} words; set base.model.max_positions to {high + 2},"
                    " which leaves room for <bos> and <eos>"
                )

    def shapes(self) -> list[tuple[str, ModelConfig, dict[str, object]]]:
        """Return the name, the full settings and the changes from the base of each model."""
        models = []
        for name, change in self.axes.shapes():
            try:
                shape = self.base.resolve(change)[0]
            except ValueError as error:
                raise ValueError(f"axes.model: {change}: {error}") from error
            models.append((name or shape.label, shape, change))
        return models

    @property
    def most_sentences(self) -> int:
        """Size of the largest train set, or of the text of the vocabulary if that is larger."""
        return max(*self.axes.sentences, self.vocabulary_sentences or 0)


def require_sentences(config: SweepConfig, there: int) -> None:
    """Refuse a train split that is too small.

    Raises:
        ValueError: ``there`` are fewer sentences than a cell, or the vocabulary, is to be made from.
    """
    needed = config.most_sentences
    if needed > there:
        key = "axes.sentences" if needed in config.axes.sentences else "vocabulary_sentences"
        raise ValueError(f"{key} asks for {needed:,} sentences, but the train split of the corpus has {there:,}")


def load_sweep(path: str | Path, overrides: list[str] | None = None) -> SweepConfig:
    """Read a YAML configuration; ``overrides`` are ``a.b=value`` with YAML values.

    Raises:
        InputError: the file cannot be read, or a key or value is wrong; the message names the key.
    """
    path = Path(path)
    values = read_settings(path, overrides)
    try:
        return SweepConfig(**values)
    except ValidationError as error:
        raise InputError(_explain(error), path) from error


def _explain(error: ValidationError) -> str:
    """Explain the mistake in what was meant if a key may be text or a mapping."""
    relevant = [e for e in error.errors() if e["loc"][-1:] != ("str",)]
    if len(relevant) == len(error.errors()) or not relevant:
        return explain(error, model=SweepConfig)
    where = ".".join(str(part) for part in relevant[0]["loc"] if part not in ("CorpusConfig", "EmbeddedGrammar"))
    return f"{where}: {mistake(relevant[0])}"
