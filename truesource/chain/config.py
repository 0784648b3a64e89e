"""The parts of a configuration that say where the text comes from, and who learns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator
from pydantic.dataclasses import dataclass as checked

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.estimate.split_merge.config import SplitMerge
from truesource.grammar.records import explain
from truesource.grammar.settings import Settings
from truesource.grammar.treebank.binarise import Binarisation
from truesource.grammar.treebank.normalise import Normalisation
from truesource.lmtrain.architectures import DEFAULT
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.presets import preset

STRICT = ConfigDict(extra="forbid")


def _length_range(value: Any) -> Any:
    if value is None or isinstance(value, LengthRange):
        return value
    return LengthRange.parse(str(value))


#: written ``6..25`` (inclusive), or none
Lengths = Annotated[
    LengthRange | None,
    BeforeValidator(_length_range),
    PlainSerializer(lambda value: None if value is None else str(value)),
]


@checked(config=STRICT, frozen=True)
class _Normalisation(Normalisation):
    """Its fields, checked; the length range is written as text."""

    lengths: Lengths = None


@checked(config=STRICT, frozen=True)
class _SplitMerge(SplitMerge):
    """Its fields, checked."""


@checked(config=STRICT, frozen=True)
class _Binarisation(Binarisation):
    """Its fields, checked."""


class DatasetSource(Settings):
    """Trees in a column of a dataset that `datasets` can load from disk."""

    path: str
    column: str = "tree"
    split: str | None = None


class TreebankConfig(Settings):
    """Where the trees come from: exactly one of ``embedded``, ``files``, ``nltk`` and ``dataset``."""

    embedded: Literal["english"] | None = None
    sentences: int = Field(4000, ge=1)  #: trees to sample from the embedded grammar, held-out ones included
    files: str | list[str] | None = (
        None  #: Penn bracketings: file, folder, glob, or a list; relative to the configuration
    )
    nltk: str | None = None  #: a corpus that NLTK has installed
    dataset: DatasetSource | None = None
    held_out_files: str | list[str] | None = None  #: trees for held-out likelihood; default: a share of the treebank
    held_out: float = Field(0.05, ge=0.0, lt=0.9)  #: that share, taken at random
    limit: int | None = Field(None, ge=1)  #: use no more trees than this
    normalise: _Normalisation = _Normalisation()

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        given = [name for name in ("embedded", "files", "nltk", "dataset") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of embedded, files, nltk and dataset, got {', '.join(given) or 'none'}")
        for name in ("files", "nltk", "held_out_files"):
            value = getattr(self, name)
            if value is not None and (not value or "" in [*value]):
                raise ValueError(f"{name} is empty; name a treebank there, or leave the key out")
        return self


class GrammarConfig(Settings):
    """How the grammar is made: induced from the treebank, or read from ``file``."""

    method: Literal["split_merge", "relative_frequency", "file"] = "split_merge"
    file: str | None = None  #: a grammar in any format `truesource convert` reads; relative to the configuration
    binarise: _Binarisation = _Binarisation()
    split_merge: _SplitMerge = _SplitMerge()

    @model_validator(mode="after")
    def _file_goes_with_method(self) -> Self:
        if (self.method == "file") != (self.file is not None):
            raise ValueError("method: file and a file name go together")
        return self


class CorpusConfig(Settings):
    """What is sampled."""

    lengths: Lengths = LengthRange(6, 25)
    splits: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")], Annotated[int, Field(ge=1)]] = {
        "train": 40_000, "dev": 1000, "test": 1000, "eval": 1000
    }  # fmt: skip
    trees: bool = True
    shard_size: int = Field(50_000, ge=1)
    workers: int = Field(1, ge=1)


def _unless_masked(shape: ModelConfig, settings: TrainConfig) -> str | None:
    return None if shape.objective == "masked" else f"{shape.architecture} masks no words"


def _unless_snapshots(kind: str) -> Callable[[ModelConfig, TrainConfig], str | None]:
    return lambda shape, settings: None if settings.snapshots == kind else f"it is for snapshots: {kind}"


#: training settings that some models do nothing with, and why
_IDLE = (
    ("mask_probability", _unless_masked),
    ("mask_probability_end", _unless_masked),
    ("snapshot_every", _unless_snapshots("linear")),
    ("snapshots_per_doubling", _unless_snapshots("log")),
)


class ModelEntry(Settings):
    """One model: a preset for its architecture (gpt2 unless ``model`` says another), and what differs from it."""

    renamed = {"probe": "oracle_monitor", "probe_sentences": "oracle_monitor_sentences"}
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    preset: str | None = None
    model: dict[str, Any] = {}
    training: dict[str, Any] = {}
    oracle_monitor: bool = False  #: compare it with the grammar during training, at every line of metrics.jsonl
    oracle_monitor_sentences: int = Field(200, ge=1)  #: number of sentences of the split dev to compare on

    @model_validator(mode="after")
    def _settings_are_known(self) -> Self:
        self.resolve()
        return self

    @property
    def keeps_snapshots(self) -> bool:
        """Whether models along the training are kept, see `truesource.lmtrain.snapshots`."""
        training = self.resolve()[1]
        return training is not None and training.snapshots != "none"

    @property
    def of_pieces(self) -> bool:
        """Whether the model gives a probability to every way to cut a text: it is causal, and of pieces."""
        shape = self.resolve()[0]
        return shape.tokenizer != "word" and shape.objective == "causal"

    def resolve(self) -> tuple[ModelConfig, TrainConfig | None]:
        """The full settings; an n-gram model has none of training.

        Raises:
            ValueError: an unknown preset, architecture, key or value.
        """
        base = None if self.preset is None else preset(self.preset, str(self.model.get("architecture", DEFAULT)))
        model = dict(base.model.model_dump(), **self.model) if base else dict(self.model)
        if model.get("tokenizer", "word") != "word" and "min_count" not in self.model:
            model.pop("min_count", None)  # of a preset for whole words
        training = base.training.model_dump() if base and base.training else {}
        if "max_steps" in self.training or "epochs" in self.training:
            training = {k: v for k, v in training.items() if k not in ("max_steps", "epochs")}
        if "batch_tokens" in self.training:
            training.pop("batch_sentences", None)
        try:
            shape = model_settings(**{**model, "name": self.name})
        except ValidationError as error:
            raise ValueError(explain(error, "model")) from error
        if shape.counts:
            if self.training:
                raise ValueError(
                    f"training: {shape.architecture} takes no {', '.join(self.training)}; leave training out"
                )
            return shape, None
        try:
            settings = TrainConfig(**{**training, **self.training})
        except ValidationError as error:
            raise ValueError(explain(error, "training")) from error
        for key, reason in _IDLE:
            if key in self.training and (why := reason(shape, settings)) is not None:
                raise ValueError(f"training.{key}: {why}; leave it out")
        return shape, settings
