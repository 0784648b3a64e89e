"""The configuration of an experiment: one YAML file, checked key by key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError, model_validator
from pydantic.dataclasses import dataclass as checked

from evaluation.dynamics.derivations import Tags
from evaluation.pairs.settings import PHENOMENA
from evaluation.pairs.settings import Settings as PairSettings
from grammar.conditioning import LengthRange
from grammar.errors import InputError
from grammar.estimate.split_merge.config import SplitMerge
from grammar.treebank.binarise import Binarisation
from grammar.treebank.normalise import Normalisation
from lmtrain.config import ModelConfig, TrainConfig
from lmtrain.decoding.settings import Decoding
from lmtrain.presets import preset
from truesource.tokenisation_config import TokenisationConfig

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


class Section(BaseModel):
    """Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DatasetSource(Section):
    """Trees in a column of a dataset that `datasets` can load from disk."""

    path: str
    column: str = "tree"
    split: str | None = None


class TreebankConfig(Section):
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
        return self


class GrammarConfig(Section):
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


class CorpusConfig(Section):
    """What is sampled."""

    lengths: Lengths = LengthRange(6, 25)
    splits: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")], Annotated[int, Field(ge=1)]] = {
        "train": 40_000, "dev": 1000, "test": 1000, "eval": 1000
    }  # fmt: skip
    trees: bool = True
    shard_size: int = Field(50_000, ge=1)
    workers: int = Field(1, ge=1)


class ModelEntry(Section):
    """One model: a preset for its architecture (gpt2 unless ``model`` says another), and what differs from it."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    preset: str | None = None
    model: dict[str, Any] = {}
    training: dict[str, Any] = {}
    probe: bool = False  #: compare it with the grammar during training, at every line of metrics.jsonl
    probe_sentences: int = Field(200, ge=1)  #: on so many sentences of the split dev

    @model_validator(mode="after")
    def _settings_are_known(self) -> Self:
        self.resolve()
        return self

    @property
    def keeps_snapshots(self) -> bool:
        """Whether models along the training are kept, see `lmtrain.snapshots`."""
        training = self.resolve()[1]
        return training is not None and training.snapshots != "none"

    def resolve(self) -> tuple[ModelConfig, TrainConfig | None]:
        """The full settings; an n-gram model has none of training.

        Raises:
            ValueError: an unknown preset, architecture, key or value.
        """
        base = None if self.preset is None else preset(self.preset, str(self.model.get("architecture", "gpt2")))
        model = dict(base.model.model_dump(), **self.model) if base else dict(self.model)
        if model.get("tokenizer", "word") != "word" and "min_count" not in self.model:
            model.pop("min_count", None)  # of a preset for whole words
        training = base.training.model_dump() if base and base.training else {}
        if "max_steps" in self.training or "epochs" in self.training:
            training = {k: v for k, v in training.items() if k not in ("max_steps", "epochs")}
        if "batch_tokens" in self.training:
            training.pop("batch_sentences", None)
        try:
            shape = ModelConfig(**{**model, "name": self.name})
        except ValidationError as error:
            raise ValueError(explain(error, "model")) from error
        if shape.architecture == "ngram":
            if self.training:
                raise ValueError(f"training: ngram takes no {', '.join(self.training)}; leave training out")
            return shape, None
        try:
            return shape, TrainConfig(**{**training, **self.training})
        except ValidationError as error:
            raise ValueError(explain(error, "training")) from error


class TendenciesConfig(Section):
    """Samples of the causal models by several decoding schemes, and what their text looks like; docs/tendencies.md."""

    #: a scheme with its settings, or its bare name; see `lmtrain.decoding.settings.Decoding`
    schemes: list[str | dict[str, Any]] = [
        "ancestral", {"scheme": "nucleus", "top_p": 0.9}, {"scheme": "beam_sampling", "beams": 5}
    ]  # fmt: skip
    sentences: int = Field(2000, ge=20)  #: to draw by each model and scheme
    reference: Literal["truth", "split"] = "truth"  #: the exact distribution, or the sentences of ``evaluation.split``
    chance: int = Field(999, ge=19)  #: samples of the truth that show what chance does; p is 1 / (1 + chance) or more
    permutations: int = Field(999, ge=19)  #: of sentences, with ``reference: split``
    stopwords: str | None = None  #: file, one word a line, relative to the configuration; None: an English list

    @model_validator(mode="after")
    def _schemes_are_known(self) -> Self:
        self.decodings()
        return self

    def decodings(self) -> dict[str, Decoding]:
        """The schemes by name, such as ``nucleus-0.9``.

        Raises:
            ValueError: one is unknown, two are the same, or the sentences of one are not independent.
        """
        found: dict[str, Decoding] = {}
        for given in self.schemes:
            record = {"scheme": given} if isinstance(given, str) else given
            name = "-".join([str(record.get("scheme")), *(f"{v}" for k, v in record.items() if k != "scheme")])
            try:
                decoding = Decoding.from_record(record)
            except (InputError, TypeError) as error:
                raise ValueError(f"schemes: {error}") from error
            if decoding.at_most > 1:
                raise ValueError(
                    "schemes: sentences of one beam are not independent, as all tests need; leave out keep"
                )
            if decoding.scheme == "beam":
                raise ValueError("schemes: beam search always gives the same sentence; take beam_sampling")
            if name in found:
                raise ValueError(f"schemes: {name} stands twice")
            found[name] = decoding
        if not found:
            raise ValueError("schemes: name one or more, such as ancestral")
        return found


class PairsConfig(Section):
    """Minimal pairs from the grammar, and what the models prefer; see docs/pairs.md."""

    number: int = Field(200, ge=1)  #: at most so many pairs of each phenomenon
    phenomena: list[str] = list(PHENOMENA)
    tries: int = Field(10, ge=1)  #: at most so many sentences are drawn for each pair wanted
    tolerance: float = Field(0.5, gt=0.0, allow_inf_nan=False)  #: nats between frequencies of exchanged words, at most
    attached: float = Field(0.8, ge=0.5, lt=1.0)  #: posterior from which an attachment is nearly sure
    possible: bool = False  #: only pairs of which the grammar can make both sentences
    forms: str | None = None  #: file of forms that differ in number, relative to the configuration; None: English ones
    file: str | None = None  #: pairs to score in place of drawn ones, JSON lines, relative to the configuration

    @model_validator(mode="after")
    def _phenomena_are_known(self) -> Self:
        try:
            PairSettings(phenomena=tuple(self.phenomena))
        except InputError as error:
            raise ValueError(str(error)) from error
        return self


class ProbeConfig(Section):
    """Linear probes on the layers of the networks, against the exact posterior; see docs/probing.md."""

    targets: list[Literal["tag", "state", "span"]] = Field(["tag"], min_length=1)
    sentences: int | None = Field(1000, ge=3)  #: the first so many of the split that is evaluated; None: all
    checkpoints: Literal["last", "all"] = "all"  #: all: also the snapshots of models that kept some
    split_by: Literal["type", "position"] = "type"  #: no word type is in two parts; or 80/10/10 of the text
    soft: bool = True  #: train on the exact posterior; false: on the right label alone
    right: Literal["argmax", "sampled"] = "argmax"  #: the most probable label, or that of a tree drawn
    control: Literal["tokens", "split", "none"] = "tokens"  #: split on which selectivity is measured
    mdl: bool = True  #: also the minimum description length
    correlations: bool = True  #: of probe and word probabilities
    pieces: Literal["last", "mean"] = "last"  #: of models of pieces: what stands for a word


class DynamicsConfig(Section):
    """What models with snapshots learn when, beside the truth; see docs/dynamics.md."""

    by: list[Literal["class", "length", "position", "frequency", "depth"]] = Field(
        ["class", "length", "position", "frequency", "depth"], min_length=1
    )
    tags: Tags = "expected"  #: posterior shares of each token, or tags of one derivation: ``paper`` or ``drawn``
    classes: str | None = None  #: file that maps tags to classes, relative to the configuration; None: Penn tags
    threshold: float = Field(0.2, gt=0.0, allow_inf_nan=False)  #: nats a token below which a class counts as learned
    contexts: int = Field(2000, ge=0)  #: positions for the exact divergence, about; 0: none
    sentences: int | None = Field(None, ge=2)  #: the first so many of the split; None: as all of the evaluation


class EvaluationConfig(Section):
    """What is compared with the truth."""

    split: str = "eval"
    sentences: int | None = Field(None, ge=1)  #: the first so many of the split; None: all
    frame: Literal["default", "paper"] = "default"
    tokenisation: TokenisationConfig | None = None  #: None: one way to cut each text, the tokeniser's
    tendencies: TendenciesConfig | None = None  #: None: no text is drawn from the models
    pplu: bool = False  #: also perplexities over those of word frequencies
    pairs: PairsConfig | None = None  #: None: no minimal pairs
    dynamics: DynamicsConfig | None = None  #: None: no snapshots are measured
    probe: ProbeConfig | None = None  #: None: the layers of the models are not probed


class RunConfig(Section):
    """A whole experiment."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    title: str | None = None  #: of the report
    seed: int = Field(1, ge=0)
    treebank: TreebankConfig | None = None
    grammar: GrammarConfig = GrammarConfig()
    corpus: CorpusConfig = CorpusConfig()
    models: list[ModelEntry] = []
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if (self.grammar.method == "file") == (self.treebank is not None):
            raise ValueError("give a treebank to induce from, or grammar: {method: file}, not both and not neither")
        names = [model.name for model in self.models]
        if len(set(names)) < len(names) or "oracle" in names:
            raise ValueError("model names must differ, and 'oracle' is taken")
        if self.evaluation.split not in self.corpus.splits:
            raise ValueError(f"evaluation.split {self.evaluation.split!r} is not among the splits of the corpus")
        if self.models and "train" not in self.corpus.splits:
            raise ValueError("corpus.splits needs a split train for the models to learn from")
        if self.evaluation.dynamics is not None and not any(model.keeps_snapshots for model in self.models):
            raise ValueError("evaluation.dynamics needs a model with snapshots; set its training.snapshots to log")
        if self.evaluation.dynamics is not None and self.evaluation.dynamics.tags == "paper" and not self.corpus.trees:
            raise ValueError("evaluation.dynamics.tags: paper needs corpus.trees; or take tags: drawn")
        if any(model.probe for model in self.models) and "dev" not in self.corpus.splits:
            raise ValueError("corpus.splits needs a split dev for models with probe: true")
        if self.corpus.lengths is not None:
            longest = self.corpus.lengths.high
            for entry in self.models:
                most = entry.resolve()[0].longest
                if most is not None and longest >= most:
                    raise ValueError(
                        f"the corpus has sentences of up to {longest} words, too long for {entry.name};"
                        f" set its model.max_positions to {longest + 2}, which leaves room for <bos> and <eos>"
                    )
        return self


def explain(error: ValidationError, section: str = "") -> str:
    """The first mistake that pydantic found as ``key: what is wrong``, and how many more there are.

    Args:
        error: what pydantic raised.
        section: the key that everything in it stands under.
    """
    first, more = error.errors()[0], error.error_count() - 1
    where = ".".join(str(part) for part in ((section,) if section else ()) + first["loc"])
    what = "unknown key" if first["type"] in ("extra_forbidden", "unexpected_keyword_argument") else first["msg"]
    rest = f" (and {more} more)" if more else ""
    return f"{where + ': ' if where else ''}{what.removeprefix('Value error, ')}{rest}"


def load_config(path: str | Path, overrides: list[str] | None = None) -> RunConfig:
    """Read a YAML configuration; ``overrides`` are ``a.b=value`` with YAML values.

    Raises:
        InputError: the file cannot be read, or a key or value is wrong; the message names the key.
    """
    values = read_settings(Path(path), overrides)
    try:
        return RunConfig(**values)
    except ValidationError as error:
        raise InputError(explain(error), path) from error


def read_settings(path: Path, overrides: list[str] | None = None) -> dict[str, Any]:
    """The keys and values of a YAML file, some of them overridden; nothing of them is checked.

    Raises:
        InputError: the file cannot be read, or is no mapping; an override is not written like one.
    """
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the configuration: {error.strerror}", path) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "it is not UTF-8 text"
        raise InputError(f"the configuration is not YAML: {reason}", path, mark.line + 1 if mark else None) from error
    if not isinstance(values, dict):
        raise InputError("the configuration must be a mapping with the key name", path)
    for override in overrides or []:
        _override(values, override)
    return {str(key): value for key, value in values.items()}


def parse_value(override: str, text: str) -> Any:
    """The value of an override, read as YAML.

    Raises:
        InputError: it is not YAML.
    """
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"the value of the override {override!r} is not YAML; close brackets and quotes") from error


def _override(values: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    *parents, last = key.split(".")
    if not separator or not all([*parents, last]):
        raise InputError(f"an override is written key.subkey=value, got {override!r}")
    for parent in parents:
        if values.get(parent) is None:
            values[parent] = {}
        inner = values[parent]
        if isinstance(inner, list):
            raise InputError(f"{parent} is a list, so {key} cannot be set; write the whole list, such as models=[...]")
        if not isinstance(inner, dict):
            raise InputError(f"{key} cannot be set: {parent} is a plain value")
        values = inner
    values[last] = parse_value(override, text)
