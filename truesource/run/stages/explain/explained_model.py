"""An explained model, and its recorded training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.explain.report import NO_TRAINING
from truesource.generator.abilities import offers
from truesource.generator.columns import CodedSentences
from truesource.generator.corpus import Corpus
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import explain, read_record
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.levers import KnownTraining
from truesource.lmtrain.model_registry import model_settings, with_code
from truesource.lmtrain.training_record import FILE, REMEDY, WHAT

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from truesource.generator.language_model import LanguageModel


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainedModel:
    """A model with its text and truth, and the record of its training if truesource trained it."""

    trained_in: Path  #: folder of the model
    model: LanguageModel
    setting: Setting  #: text and truth that it is measured on
    corpus: Corpus  #: corpus that it was trained on
    base: Path | None = None  #: folder that relative paths of custom code start from

    @cached_property
    def record(self) -> dict[str, Any]:
        """``training.json`` of the model.

        Raises:
            InputError: it was not trained here (code ``not-trained-here``), on another text (``other-text``), or from
                the weights of another model (``other-weights``).
        """
        path = self.trained_in / FILE
        if not path.is_file():
            raise InputError(
                "truesource did not train this model, so it cannot retrain it with other settings",
                self.trained_in,
                code="not-trained-here",
            )
        record = read_record(path, dict[str, Any], remedy=REMEDY)
        if record.get("corpus_digest") != self.corpus.digest:
            raise InputError(
                f"this model was trained on another text than {self.corpus.path}; use the corpus that it was trained"
                " on",
                self.trained_in,
                code="other-text",
            )
        if "weights_digest" in record:
            raise InputError(
                "this model started from the weights of another, so it cannot be compared with new trainings",
                self.trained_in,
                code="other-weights",
            )
        return record

    @cached_property
    def unknown(self) -> InputError | None:
        """Reason why the training of the model is unknown, so that it has no levers; None if it is known.

        Raises:
            InputError: the record of the training is damaged.
        """
        try:
            _ = self.record
        except InputError as error:
            if error.code not in NO_TRAINING:
                raise
            return error
        return None

    @property
    def text_known(self) -> bool:
        """True if the corpus is the text that the model was trained on, by its record or else by the user."""
        return self.unknown is None or self.unknown.code != "other-text"

    @cached_property
    def reads_words(self) -> bool:
        """True if n-gram models of the words of the corpus predict the same tokens as the model."""
        if self.unknown is None:
            return self.shape.tokenizer == "word"
        words = self.model.vocabulary
        return words is not None and not offers(self.model, "pieces") and set(words) == set(self.train_split.words)

    @cached_property
    def shape(self) -> ModelConfig:
        """Settings of the model."""
        with self._settings_of("model"):
            settings = model_settings(**self.record["model"])
        return with_code(settings, self.base)

    @cached_property
    def training(self) -> TrainConfig | None:
        """Settings of its training; None for n-gram models."""
        training = self.record["training"]
        with self._settings_of("training"):
            return None if training is None else TypeAdapter(TrainConfig).validate_python(training)

    @contextmanager
    def _settings_of(self, part: str) -> Iterator[None]:
        """Refuse a record with invalid settings of a part."""
        try:
            yield
        except (ValidationError, TypeError, InputError) as error:
            reason = explain(error, part) if isinstance(error, ValidationError) else f"{part} is not a mapping"
            if isinstance(error, InputError):
                reason = error.reason
            path = self.trained_in / FILE
            raise InputError(f"{WHAT} is damaged: {reason}; {REMEDY}", path, code="damaged") from error

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """Tokeniser of the model."""
        from truesource.lmtrain.loading import load_tokenizer

        return load_tokenizer(self.trained_in)

    @cached_property
    def train_split(self) -> CodedSentences:
        """The sentences that it was trained on."""
        return self.corpus.coded("train")

    @cached_property
    def trained(self) -> KnownTraining:
        """Known settings and size of the training."""
        return KnownTraining(
            model=self.shape,
            training=self.training,
            steps=int(self.record.get("steps") or 0),
            epochs=float(self.record["final"].get("epoch") or 0.0),
            sentences=len(self.train_split),
            longest=int(self.train_split.lengths.max()),
            words=len(self.model.vocabulary or ()),
            ordered=self.setting.transform is None,
            all_known=self.model.vocabulary is None or set(self.train_split.words) <= set(self.model.vocabulary),
        )
