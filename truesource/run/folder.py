"""A run folder and what the stages of a run share."""

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
    from truesource.generator.corpus import Corpus
    from truesource.generator.language_model import LanguageModel
    from truesource.generator.objectives import Objective
    from truesource.generator.plan import Transform
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.truth import Truth
    from truesource.lmtrain.references import ModelReference


S = TypeVar("S", bound=Settings)
Note = dict[str, str]  #: why there was nothing to measure: ``code``, and ``reason``, a sentence


@dataclass
class RunFolder:
    """A run folder and what its stages share."""

    config: RunConfig
    folder: Path
    base: Path  #: relative paths of the configuration start here
    outputs: dict[str, str] = field(default_factory=dict)  #: digest of what each stage made
    unmeasured: dict[str, Note] = field(default_factory=dict)  #: stages that found nothing to measure
    _settings: dict[tuple[int | None, bool, bool], Setting] = field(default_factory=dict, init=False, repr=False)

    @property
    def grammar_file(self) -> Path:
        """The induced (or given) grammar."""
        return self.folder / "grammar" / "grammar.npz"

    @cached_property
    def truth(self) -> Truth:
        """The grammar or process of the run; only after its stage."""
        from truesource.grammar.truth import load_truth

        return load_truth(self.grammar_file)

    @property
    def pcfg(self) -> PCFG:
        """The grammar of the run; only after its stage.

        Raises:
            InputError: it is a process.
        """
        from truesource.generator.abilities import require

        return require(self.truth, "parses", "this part of a run")

    @cached_property
    def text_truth(self) -> tuple[Truth, Transform | None]:
        """The truth about the text of the corpus, and what is left of its transform: `evaluation.core.transformed`."""
        from truesource.evaluation.core.transformed import text_grammar

        return text_grammar(self.truth, self.corpus.transform)

    @cached_property
    def corpus(self) -> Corpus:
        """The corpus of the run; only after its stage."""
        from truesource.generator.corpus import Corpus

        return Corpus.load(self.folder / "corpus")

    @cached_property
    def _text(self) -> Text:
        """The split that models are measured on."""
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
            first: number of sentences; None: as many as are scored, or all.
            scores: in the frame of scores, and in as many sentences; False: all positions of all sentences.
            corrected: the truth excludes what disjoint splits exclude, if tokens are scored; full distributions are
                always those of the grammar.
        """
        from truesource.evaluation.core.setting import Setting

        if (key := (first, scores, corrected)) in self._settings:  # which keep the scores of the truth
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
        """The objective of an entry; of one that is loaded, only after its stage."""
        if not entry.loaded:
            return entry.resolve(self.base)[0].objective
        from truesource.evaluation.show.records import REMEDY, LoadedRecord
        from truesource.grammar.support.records import read_record

        path = self.folder / "loaded" / f"{entry.name}.json"
        return read_record(path, LoadedRecord, remedy=REMEDY)["objective"]

    def vocabulary(self, objective: Objective) -> ComparisonVocabulary | None:
        """The vocabulary that models of an objective are compared in; None: their own. Only after its stage."""
        if "vocabulary" not in self.outputs:  # no two models are compared
            return None
        from truesource.evaluation.core.vocabulary import ComparisonVocabulary
        from truesource.report.finished_run import VOCABULARY, read_vocabularies

        found = read_vocabularies(self.folder / VOCABULARY).get(objective)
        return None if found is None else ComparisonVocabulary.of_record(found, self.text_truth[0])

    def compared_model(self, entry: ModelEntry) -> LanguageModel:
        """The model of an entry in the vocabulary that it is compared in; only after the stage of the vocabularies.

        Raises:
            InputError: as `model`.
        """
        from truesource.evaluation.core.vocabulary import in_vocabulary

        return in_vocabulary(self.model(entry), self.vocabulary(self.objective(entry)))

    def model(self, entry: ModelEntry) -> LanguageModel:
        """The model of an entry; only after its stage.

        Raises:
            InputError: as `truesource.lmtrain.models.load_model`.
        """
        from truesource.lmtrain.models import load_model

        return load_model(self.reference(entry))

    def reference(self, entry: ModelEntry) -> ModelReference:
        """Return where the model of an entry comes from.

        Raises:
            InputError: a model to load is none (code ``no-model``), or a variable in its path is not set.
        """
        from truesource.lmtrain.own.settings import OwnSettings
        from truesource.lmtrain.references import ModelReference, code_of_architecture, model_reference

        if entry.load is not None:
            return model_reference(self.fill(entry.load), self.base)
        folder, shape = self.model_folder(entry), entry.resolve(self.base)[0]
        code = code_of_architecture(shape.architecture) if isinstance(shape, OwnSettings) else None
        return ModelReference(entry.name, folder=folder, code=code, base=self.base)

    def model_folder(self, entry: ModelEntry) -> Path:
        """Return where a model that is trained here stands."""
        return self.folder / "models" / entry.name

    def weights_of(self, entry: ModelEntry) -> Path | None:
        """The folder of the model whose weights a training starts from; None: from random ones.

        Raises:
            InputError: a variable in its path is not set.
        """
        return None if entry.weights is None else Path(self.resolve(entry.weights))

    def model_digest(self, entry: ModelEntry) -> str:
        """The digest that the stages that use a model depend on; only after its stage."""
        return self.outputs[f"{'load' if entry.loaded else 'train'}:{entry.name}"]

    def seed_of(self, entry: ModelEntry) -> int:
        """The seed that a model is trained with: its own, of a replicate, or that of the run."""
        return entry.seed if isinstance(entry, Replicate) else self.config.seed

    def settings(self, kind: type[S]) -> S:
        """The settings of an evaluator that the configuration asks for, with the paths of its files."""
        return self.config.evaluation.of(kind).resolved(lambda file: Path(self.resolve(str(file))))

    def resolve(self, name: str) -> str:
        """A path of the configuration, ``~`` and environment variables filled in, relative to its folder.

        Raises:
            InputError: a variable is not set.
        """
        return str(self.base / self.fill(name))

    def fill(self, name: str) -> str:
        """A path of the configuration with ``~`` and environment variables filled in.

        Raises:
            InputError: a variable is not set.
        """
        filled = os.path.expanduser(os.path.expandvars(name))  # noqa: PTH111 (a glob pattern is no path)
        if unset := re.search(r"\$\{?(\w+)", filled):
            raise InputError(
                f"the configuration names {name!r}, but the environment variable {unset[1]} is not set; set it"
            )
        return filled


def check_references(run: RunFolder) -> None:
    """Find every model that is loaded, or whose weights are; code is imported, and not called.

    Raises:
        InputError: one is not there, or its code cannot be imported or lacks the name.
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
