"""The language models, trained on the corpus."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field, ValidationError, model_validator

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import NAME_PATTERN, explain
from truesource.grammar.support.settings import Settings
from truesource.lmtrain.architectures.settings import DEFAULT
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.model_registry import Preset, preset, settings_class
from truesource.lmtrain.own.settings import OwnSettings, find
from truesource.lmtrain.references import is_own
from truesource.run.named_grammar import ARCHITECTURE, TRAINING
from truesource.run.reading import parse_value

if TYPE_CHECKING:
    from truesource.generator.objectives import Objective

WEIGHTS = "Model folder with the initial weights; words that it lacks start from random vectors."


def _unless_masked(shape: ModelConfig, settings: TrainConfig) -> str | None:
    return None if shape.objective != "causal" else f"{shape.architecture} masks no words"


def _unless_snapshots(kind: str) -> Callable[[ModelConfig, TrainConfig], str | None]:
    return lambda shape, settings: None if settings.snapshots == kind else f"it is for snapshots: {kind}"


#: training settings that some models ignore, and why
_IDLE = (
    ("mask_probability", _unless_masked),
    ("mask_probability_end", _unless_masked),
    ("snapshot_every", _unless_snapshots("linear")),
    ("snapshots_per_doubling", _unless_snapshots("log")),
)


class ModelEntry(Settings):
    """One model: a preset for its architecture (gpt2 unless ``model`` changes it), and changes to it.

    Or an existing model, to ``load``.
    """

    advanced: ClassVar = frozenset({"oracle_monitor_sentences", "weights"})
    name: str = Field(pattern=NAME_PATTERN, description="Name in tables and figures, and of the model's folder.")
    load: str | None = Field(
        None,
        min_length=1,
        description="Use an existing model: a folder that transformers loads, or code as file.py:name.",
    )
    preset: str | None = Field(
        None, description="Settings to start from: tiny (minutes on a CPU), or paper (Jumelet and Zuidema 2023)."
    )
    model: Annotated[dict[str, object], ARCHITECTURE] = Field(
        {}, description="Architecture, size and vocabulary; overrides the preset."
    )
    training: Annotated[dict[str, object], TRAINING] = Field(
        {}, description="Duration, optimiser and batches; overrides the preset."
    )
    weights: str | None = Field(None, min_length=1, description=WEIGHTS)
    oracle_monitor: bool = Field(
        False, description="Compare the model with the grammar during training, at each line of metrics.jsonl."
    )
    oracle_monitor_sentences: int = Field(
        200, ge=1, description="Number of sentences of the split dev that the oracle monitor uses."
    )

    @model_validator(mode="after")
    def _settings_are_known(self) -> Self:
        if self.load is None:
            self.resolve()
        elif unused := sorted(self.model_fields_set - {"name", "load"}):
            raise ValueError(f"load uses a model unchanged, without {unused[0]}; remove {unused[0]} or load")
        return self

    @property
    def loaded(self) -> bool:
        """True if it is loaded; its abilities are then known only after loading."""
        return self.load is not None

    @property
    def needs_training(self) -> bool:
        """True if it is a network that is trained here: neither loaded nor an n-gram model."""
        return not self.loaded and self.is_network

    @property
    def keeps_snapshots(self) -> bool:
        """True if snapshots of the training are saved, see `lmtrain.snapshots`; of a loaded model: perhaps."""
        if self.loaded:
            return True
        training = self.resolve()[1]
        return training is not None and training.snapshots != "none"

    @property
    def of_pieces(self) -> bool:
        """True for a causal model of pieces, which scores every segmentation; for a loaded model: perhaps."""
        if self.loaded:
            return True
        shape = self.resolve()[0]
        return shape.tokenizer != "word" and shape.objective == "causal"

    @property
    def of_words(self) -> bool:
        """True if it predicts whole words; for a loaded model: perhaps."""
        return self.loaded or self.resolve()[0].tokenizer == "word"

    @property
    def is_causal(self) -> bool:
        """True if it can sample sentences; for a loaded model: perhaps."""
        return self.loaded or self.resolve()[0].objective == "causal"

    @property
    def fills_gaps(self) -> bool:
        """True if it can fill gaps, as masked diffusion does; for a loaded model: perhaps."""
        return self.loaded or self.resolve()[0].objective == "any-order"

    @property
    def is_network(self) -> bool:
        """True if it has layers; for a loaded model: perhaps."""
        return self.loaded or not self.resolve()[0].counts

    def replicate(self, seed: int) -> Replicate:
        """Return the same model, trained with another seed."""
        changes = {key: value for key, value in self if key in self.model_fields_set}
        return Replicate(**{**changes, "name": f"{self.name}-seed{seed}", "seed": seed, "replicate_of": self.name})

    def resolve(self, base: Path | None = None) -> tuple[ModelConfig, TrainConfig | None]:
        """Return the full settings of a model that is trained here; n-gram models have no training settings.

        Custom code is not imported.

        Args:
            base: folder that relative paths of code start from; None: the working folder.

        Raises:
            ValueError: an unknown preset, architecture, key or value.
        """
        start = None if self.preset is None else self._start(self.preset)
        model = dict(start.model.model_dump(), **self.model) if start else dict(self.model)
        if model.get("tokenizer", "word") != "word" and "min_count" not in self.model:
            model.pop("min_count", None)  # belongs to a preset for whole words
        training = start.training.model_dump() if start and start.training else {}
        if "max_steps" in self.training or "epochs" in self.training:
            training = {k: v for k, v in training.items() if k not in ("max_steps", "epochs")}
        if "batch_tokens" in self.training:
            training.pop("batch_sentences", None)
        try:
            kind = settings_class(str(model.get("architecture", DEFAULT)))
            shape = kind.model_validate({"architecture": DEFAULT, **model, "name": self.name})
        except ValidationError as error:
            wrong = [explain(error, "model", model=settings_class(str(model.get("architecture", DEFAULT))))]
            try:
                TrainConfig.model_validate({**training, **self.training})
            except ValidationError as other:
                wrong.append(explain(other, "training", model=TrainConfig))
            raise ValueError("; ".join(wrong)) from error
        if isinstance(shape, OwnSettings):
            shape = shape.model_copy(update={"code_base": base})
        if shape.counts:
            if self.training:
                raise ValueError(f"training: {shape.architecture} takes no {', '.join(self.training)}; remove training")
            if self.weights is not None:
                raise ValueError(
                    f"weights: {shape.architecture} is an n-gram model without initial weights; remove weights"
                )
            return shape, None
        try:
            settings = TrainConfig.model_validate({**training, **self.training})
        except ValidationError as error:
            raise ValueError(explain(error, "training", model=TrainConfig)) from error
        for key, reason in _IDLE:
            if key in self.training and (why := reason(shape, settings)) is not None:
                raise ValueError(f"training.{key}: {why}; remove it")
        return shape, settings

    def _start(self, name: str) -> Preset:
        objective: Objective = "masked" if self.model.get("objective") == "masked" else "causal"
        return preset(name, str(self.model.get("architecture", DEFAULT)), objective=objective)


class Replicate(ModelEntry):
    """A model of a configuration with ``seeds``, trained with one of them; never in a configuration itself."""

    seed: int = Field(description="Random seed of its training.")
    replicate_of: str = Field(description="Name of the model in the configuration.")


def given_settings(architecture: str, overrides: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return the keys ``model`` and ``training`` of a model entry.

    Args:
        architecture: a name, or a reference to custom code, whose objective is asked if it is not set.
        overrides: ``model.KEY=VALUE`` and ``training.KEY=VALUE`` with YAML values.

    Raises:
        InputError: an override has another form, or changes the architecture; the code cannot be imported.
    """
    values: dict[str, dict[str, object]] = {"model": {"architecture": architecture}, "training": {}}
    for override in overrides:
        key, _, text = override.partition("=")
        section, _, name = key.partition(".")
        if section not in values or not name or not text:
            raise InputError(f"--set needs model.KEY=VALUE or training.KEY=VALUE, got {override!r}")
        if key == "model.architecture":
            raise InputError("use --model for the architecture, not --set")
        values[section][name] = parse_value(override, text)
    if "objective" not in values["model"] and is_own(architecture):
        stated = find(OwnSettings(architecture=architecture)).objective  # named on the command line, so it may run
        values["model"] |= {} if stated is None else {"objective": stated}
    return values


def plain_name(text: str) -> str:
    """Convert a text to a name of letters, digits, dots, hyphens and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("._-") or "model"
