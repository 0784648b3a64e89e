"""The models that are measured: what is asked for, and their full settings on a language of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from truesource.benchmark.results import REFERENCES
from truesource.benchmark.suite import Suite, SuiteLanguage
from truesource.chain.models.config import ModelEntry
from truesource.chain.models.given import given_settings, plain_name
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import explain
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.model_registry import completed, settings_class
from truesource.lmtrain.references import is_own

ALL = "all"  #: stands for every baseline of a suite
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


@dataclass(frozen=True)
class Candidate:
    """A model of a benchmark: an architecture, and its settings where they differ from the suite's preset."""

    name: str
    architecture: str  #: a name, a reference to code of one's own, one of `REFERENCES`, or `TRAINED`
    model: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    base: Path | None = None  #: folder that relative files of code start from; None: the working folder
    folder: Path | None = None  #: of a model that somebody trained, or with a folder for each language; None: no such

    @property
    def trained(self) -> bool:
        """Whether the benchmark trains it, or counts for it, on the corpora."""
        return self.architecture not in REFERENCES and self.folder is None

    @property
    def settings(self) -> dict[str, Any]:
        """What was chosen, for the file of results."""
        return {"model": dict(self.model), "training": dict(self.training)}

    def by_objective(self) -> list[Candidate]:
        """The same; a reference is there for causal and for masked models."""
        if self.trained or self.folder is not None:
            return [self]
        return [replace(self, model={"objective": objective}) for objective in ("causal", "masked")]

    def folder_of(self, language: str, *, alone: bool) -> Path:
        """The folder of the model that was trained on a language.

        Args:
            language: name in the suite.
            alone: it is the only one that is measured, so the folder may be that of the model itself.

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
        """The full settings on a language; code of one's own is imported, and named with its digest.

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
    """The models that a command asks for.

    Args:
        suite: names of its baselines stand for their settings.
        asked: names of baselines, architectures, references to code, ``all`` for every baseline, or ``NAME=FOLDER`` for
            a model that was trained on the corpora.
        overrides: ``model.KEY=VALUE`` and ``training.KEY=VALUE``; for one model.
        name: what the one model is called; None: by the suite, or by architecture and settings.

    Raises:
        InputError: there is no such architecture, two models have one name, or settings are given for several.
    """
    wanted = [each for one in asked for each in (suite.baselines if one == ALL else (one,))]
    if (overrides or name is not None) and len(wanted) != 1:
        raise InputError("--set and --name are for one model; name one with --model", code="several-models")
    found = [_candidate(suite, one, overrides, name) for one in wanted]
    names = [each.name for each in found]
    twice = sorted({each for each in names if names.count(each) > 1})
    if twice:
        raise InputError(f"the model {twice[0]} is asked for twice; name it once", code="repeated-name")
    return [of_one for each in found for of_one in each.by_objective()]


def baseline(suite: Suite, name: str) -> Candidate:
    """A baseline of a suite.

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
        found = baseline(suite, asked)
        return found if name is None else Candidate(name, found.architecture, found.model, found.training)
    if asked in REFERENCES:
        raise InputError(f"{asked} takes no settings; leave --set out", code="model-settings")
    start = baseline(suite, asked) if asked in suite.baselines else Candidate(asked, asked)
    given = given_settings(start.architecture, overrides)
    model = {**start.model, **{key: value for key, value in given["model"].items() if key != "architecture"}}
    candidate = Candidate(name or "model", start.architecture, model, {**start.training, **given["training"]})
    if name is not None:
        return candidate
    shape = candidate.resolve(suite, next(iter(suite.languages.values())))[0]
    label = plain_name(shape.model_copy(update={"name": None}).label)
    return Candidate(label, candidate.architecture, candidate.model, candidate.training)
