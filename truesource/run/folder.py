"""The folder of a run, and the data that its stages share."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import Settings
from truesource.run.config import RunConfig
from truesource.run.models import ModelEntry, Replicate

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.evaluation.core.setting import Setting
    from truesource.evaluation.core.text import Text
    from truesource.evaluation.core.vocabulary import ComparisonVocabulary
    from truesource.evaluation.show.records import NoteRecord
    from truesource.generator.corpus import Corpus
    from truesource.generator.language_model import LanguageModel
    from truesource.generator.objectives import Objective
    from truesource.generator.plan import Transform
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.truth import Truth
    from truesource.lmtrain.references import ModelReference


S = TypeVar("S", bound=Settings)


@dataclass
class RunFolder:
    """The folder of a run, and the data that its stages share."""

    config: RunConfig
    folder: Path
    base: Path  #: folder that relative paths of the configuration start from
    outputs: dict[str, str] = field(default_factory=dict)  #: digest of the output of each stage
    unmeasured: dict[str, NoteRecord] = field(default_factory=dict)  #: stages without anything to measure
    _settings: dict[tuple[int | None, bool, bool], Setting] = field(default_factory=dict, init=False, repr=False)

    @property
    def grammar_file(self) -> Path:
        """File of the induced or configured grammar."""
        return self.folder / "grammar" / "grammar.npz"

    @cached_property
    def truth(self) -> Truth:
        """Grammar or process of the run; only after its stage."""
        from truesource.grammar.truth import load_truth

        return load_truth(self.grammar_file)

    @property
    def pcfg(self) -> PCFG:
        """Grammar of the run; only after its stage.

        Raises:
            InputError: it is a process.
        """
        from truesource.generator.abilities import require

        return require(self.truth, "parses", "this part of a run")

    @cached_property
    def text_truth(self) -> tuple[Truth, Transform | None]:
        """Truth about the text of the corpus, and the remaining transform: `evaluation.core.transformed`."""
        from truesource.evaluation.core.transformed import text_grammar

        return text_grammar(self.truth, self.corpus.transform)

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus of the run; only after its stage."""
        from truesource.generator.corpus import Corpus

        return Corpus.load(self.folder / "corpus")

    @cached_property
    def _text(self) -> Text:
        """Split that models are measured on."""
        from truesource.evaluation.core.text import Text

        return Text.of(self.corpus, self.config.evaluation.split)

    @cached_property
    def excluded(self) -> Exclusion | None:
        """Sentences that disjoint splits exclude from the text that models are measured on; None if none."""
        return self._exclusion(scored=True)

    def _exclusion(self, *, scored: bool) -> Exclusion | None:
        from truesource.evaluation.core.exclusion import Exclusion

        split, corpus = self.config.evaluation.split, self.corpus
        return Exclusion.of(corpus, split, self.text_truth[0], corpus.lengths, scored=scored)

    def setting(self, first: int | None = None, *, scores: bool = True, corrected: bool = True) -> Setting:
        """Return the text that models are measured on, with its truth; only after the stage of the corpus.

        Args:
            first: number of sentences; None: the number of scored sentences, or all.
            scores: in the frame and number of scored sentences; False: all positions of all sentences.
            corrected: the truth excludes sentences of disjoint splits, if tokens are scored; full distributions
                always come from the grammar.
        """
        from truesource.evaluation.core.setting import Setting

        if (key := (first, scores, corrected)) in self._settings:  # settings cache the scores of the truth
            return self._settings[key]
        evaluation, (truth, transform) = self.config.evaluation, self.text_truth
        setting = Setting(
            truth,
            self._text.sentences[: first or (evaluation.sentences if scores else None)],
            self.corpus.lengths,
            evaluation.frame if scores else "default",
            self.config.seed,
            self.excluded if corrected else self._exclusion(scored=False),
            transform=transform,
            text=self._text,
        )
        return self._settings.setdefault(key, setting)

    def objective(self, entry: ModelEntry) -> Objective:
        """Return the objective of an entry; of a loaded model, only after its stage."""
        if not entry.loaded:
            return entry.resolve(self.base)[0].objective
        from truesource.evaluation.show.records import REMEDY, LoadedRecord
        from truesource.grammar.support.records import read_record

        path = self.folder / "loaded" / f"{entry.name}.json"
        return read_record(path, LoadedRecord, remedy=REMEDY).objective

    def vocabulary(self, objective: Objective) -> ComparisonVocabulary | None:
        """Return the vocabulary that models of an objective are compared in; None: their own. Only after its stage."""
        if "vocabulary" not in self.outputs:  # no two models are compared
            return None
        from truesource.evaluation.core.vocabulary import ComparisonVocabulary
        from truesource.report.finished_run import VOCABULARY, read_vocabularies

        vocabulary = read_vocabularies(self.folder / VOCABULARY).get(objective)
        return None if vocabulary is None else ComparisonVocabulary.of_record(vocabulary, self.text_truth[0])

    def compared_model(self, entry: ModelEntry) -> LanguageModel:
        """Return the model of an entry in its vocabulary of comparison; only after the stage of the vocabularies.

        Raises:
            InputError: see `model`.
        """
        from truesource.evaluation.core.vocabulary import in_vocabulary

        return in_vocabulary(self.model(entry), self.vocabulary(self.objective(entry)))

    def model(self, entry: ModelEntry) -> LanguageModel:
        """Return the model of an entry; only after its stage.

        Raises:
            InputError: see `truesource.lmtrain.models.load_model`.
        """
        from truesource.lmtrain.models import load_model

        return load_model(self.reference(entry))

    def reference(self, entry: ModelEntry) -> ModelReference:
        """Return where the model of an entry comes from.

        Raises:
            InputError: a model to load is not a model (code ``no-model``), or a variable in its path is not set.
        """
        from truesource.lmtrain.own.settings import OwnSettings
        from truesource.lmtrain.references import ModelReference, code_of_architecture, model_reference

        if entry.load is not None:
            return model_reference(self.fill(entry.load), self.base)
        folder, shape = self.model_folder(entry), entry.resolve(self.base)[0]
        code = code_of_architecture(shape.architecture) if isinstance(shape, OwnSettings) else None
        return ModelReference(entry.name, folder=folder, code=code, base=self.base)

    def model_folder(self, entry: ModelEntry) -> Path:
        """Return the folder of a model that is trained here."""
        return self.folder / "models" / entry.name

    def weights_of(self, entry: ModelEntry) -> Path | None:
        """Return the folder of the initial weights of a training; None: random weights.

        Raises:
            InputError: a variable in its path is not set.
        """
        return None if entry.weights is None else Path(self.resolve(entry.weights))

    def model_digest(self, entry: ModelEntry) -> str:
        """Return the digest of a model, an input of stages that use it; only after its stage."""
        return self.outputs[f"{'load' if entry.loaded else 'train'}:{entry.name}"]

    def seed_of(self, entry: ModelEntry) -> int:
        """Return the training seed of a model: its own for a replicate, else the seed of the run."""
        return entry.seed if isinstance(entry, Replicate) else self.config.seed

    def settings(self, kind: type[S]) -> S:
        """Return the settings of a requested evaluator, with resolved paths of its files."""
        return self.config.evaluation.of(kind).resolved(lambda file: Path(self.resolve(str(file))))

    def resolve(self, name: str) -> str:
        """Resolve a path of the configuration, relative to its folder, with ``~`` and environment variables.

        Raises:
            InputError: a variable is not set.
        """
        return str(self.base / self.fill(name))

    def fill(self, name: str) -> str:
        """Expand ``~`` and environment variables in a path of the configuration.

        Raises:
            InputError: a variable is not set.
        """
        filled = os.path.expanduser(os.path.expandvars(name))  # noqa: PTH111 (a glob pattern is not a path)
        if unset := re.search(r"\$\{?(\w+)", filled):
            raise InputError(
                f"the configuration names {name!r}, but the environment variable {unset[1]} is not set; set it"
            )
        return filled


def check_references(run: RunFolder) -> None:
    """Check every model whose code or weights are loaded; code is imported but not called.

    Raises:
        InputError: one does not exist, or its code cannot be imported or lacks the name.
    """
    for entry in run.config.models:
        if entry.loaded:
            with model_errors(entry):
                _find(run.reference(entry))
        elif (folder := run.weights_of(entry)) is not None and not folder.is_dir():
            with model_errors(entry):
                raise InputError("there is no such model folder to take weights from", folder, code="missing")


@contextmanager
def model_errors(entry: ModelEntry) -> Iterator[None]:
    """Name the model of the configuration in errors that are raised inside the block."""
    try:
        yield
    except InputError as error:
        raise InputError(f"models: {entry.name}: {error.reason}", error.path, error.line, code=error.code) from error


def _find(reference: ModelReference) -> None:
    from truesource.lmtrain.references import load_code

    if reference.folder is not None and not reference.folder.is_dir():
        raise InputError("there is no such model folder", reference.folder, code="missing")
    if reference.code is not None:
        load_code(reference.code, reference.base)
