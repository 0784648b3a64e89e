"""The trainings of an explanation: their list, costs and scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.vocabulary import ComparisonVocabulary, ModelWords, in_vocabulary
from truesource.evaluation.explain.evaluator import ExplainSettings
from truesource.evaluation.explain.measure import Rung
from truesource.evaluation.explain.report import BASE
from truesource.evaluation.explain.targets import MOST_BYTES, TargetText, read_expected
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.generator.columns import CodedSentences
from truesource.generator.corpus import Corpus
from truesource.grammar.support.archives import ArrayKind, read_arrays
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.atomic_files import all_at_once, atomic_path, remove_leftovers, write_json
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.files import digest_file, digest_json
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.parallel import Share, Workers
from truesource.grammar.support.records import read_record
from truesource.lmtrain.architectures.settings import NgramSettings
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.flops import TrainingCost, training_cost
from truesource.lmtrain.levers import Lever, LeverName, base_training, levers_of, within
from truesource.lmtrain.models import load_trained
from truesource.lmtrain.speed import seconds_of_step
from truesource.lmtrain.tokenizer import digest_tokenizer
from truesource.lmtrain.training import train
from truesource.lmtrain.training_record import FILE, training_seconds
from truesource.lmtrain.training_request import TrainingRequest
from truesource.run.cells import TrainingCells, cell_id
from truesource.run.stages.explain.explained_model import ExplainedModel
from truesource.run.tasks import Failure

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from truesource.generator.language_model import LanguageModel

PLAN = "plan.json"  #: in the folder of an explanation, written first
ORDERS = (2, 3, 5)  #: orders of n-gram models of the same text
_WHAT = "the scores of this training"


@dataclass(frozen=True, kw_only=True)
class LeverCost:
    """Approximate cost of one training of a lever."""

    parameters: int  #: without word and position vectors; 0 for n-gram models
    steps: int
    flops: int
    seconds: float  #: at the speed of this machine


@dataclass(frozen=True)
class LeverCell:
    """A training of an explanation."""

    lever: str  #: name of the lever, or `BASE`
    seed: int
    request: Mapping[str, Any]  #: all settings that decide its weights

    @property
    def id(self) -> str:
        """Name of its folder and of its scores."""
        return cell_id(self.lever, self.seed, self.request)

    def __str__(self) -> str:
        return f"{self.lever}, seed {self.seed}"


@dataclass(frozen=True, eq=False, kw_only=True)
class ExplainJob(ExplainedModel, TrainingCells[LeverCell]):
    """The explanation of one model: its training, its levers, and the folder of their trainings."""

    folder: Path  #: folder of the trainings
    settings: ExplainSettings

    @cached_property
    def levers(self) -> tuple[list[Lever], dict[LeverName, str]]:
        """Requested levers that fit the budget, and codes of reasons why others are excluded."""
        if self.unknown is not None:
            return [], dict.fromkeys(self.settings.levers, self.unknown.code)
        levers, reasons = levers_of(self.trained)
        left_out: dict[LeverName, str] = dict(reasons)
        requested = set(self.settings.levers)
        levers = [lever for lever in levers if lever.name in requested and not self._too_large(lever)]
        left_out = {name: reason for name, reason in left_out.items() if name in requested}
        if "targets" in requested and "targets" not in left_out and all(lever.name != "targets" for lever in levers):
            left_out["targets"] = "pieces" if self._targets is None else "too-large"
        seconds = {lever.name: self.settings.trainings * self.costs[lever.name].seconds for lever in levers}
        granted = 60.0 * self.settings.budget - (self.settings.trainings - 1) * self.base_cost.seconds
        affordable = within(levers, seconds, granted)
        for lever in levers:
            if lever not in affordable:
                left_out[lever.name] = "over-budget"
        return affordable, left_out

    def _too_large(self, lever: Lever) -> bool:
        return lever.expected and (self._targets is None or self._targets.bytes > MOST_BYTES)

    @cached_property
    def _targets(self) -> TargetText | None:
        """The train split in the tokens of the model with the truth about it; None: its pieces have none."""
        try:
            return TargetText.of(self._train_oracle, list(self.train_split), self.tokenizer)
        except NothingToMeasureError:
            return None

    @cached_property
    def base_cost(self) -> LeverCost:
        """Cost of the training of the model, on this machine."""
        seconds = self._seconds_of_training
        cost = self._counted(self.shape, base_training(self.trained), self.tokenizer)
        if cost is None:
            return LeverCost(parameters=0, steps=0, flops=0, seconds=seconds)
        parameters = cost.parameters.without_embeddings
        return LeverCost(parameters=parameters, steps=cost.steps, flops=cost.flops, seconds=seconds)

    @cached_property
    def costs(self) -> dict[LeverName, LeverCost]:
        """Cost of one training for each available lever."""
        costs: dict[LeverName, LeverCost] = {}
        if self.unknown is not None:
            return costs
        for lever in levers_of(self.trained)[0]:
            if lever.name not in self.settings.levers:
                continue
            cost = self._counted(lever.model, lever.training, self._tokenizer_of(lever))
            whole = self.base_cost
            if cost is None:
                times = 1.0 if lever.sentences is None else lever.sentences / self.trained.sentences
                costs[lever.name] = replace(whole, seconds=whole.seconds * times)
                continue
            seconds = whole.seconds * cost.flops / max(whole.flops, 1)
            if lever.expected and not self._too_large(lever):
                seconds += self._seconds_of_targets
            parameters = cost.parameters.without_embeddings
            costs[lever.name] = LeverCost(parameters=parameters, steps=cost.steps, flops=cost.flops, seconds=seconds)
        return costs

    @cached_property
    def _seconds_of_targets(self) -> float:
        """Estimate the time for exact targets."""
        timed = self._timed("seconds_of_targets")
        assert self._targets is not None
        return self._targets.seconds_needed() if timed is None else timed

    @cached_property
    def _seconds_of_training(self) -> float:
        """Estimate the time of the training of the model on this machine, from its first steps.

        The recorded time may be from another machine, or from a busy one.
        """
        timed = self._timed("seconds_of_training")
        training = base_training(self.trained)
        if timed is not None or training is None:
            return training_seconds(self.trained_in) or 0.0 if timed is None else timed
        seed = int(self.record["seed"])
        step = seconds_of_step(self.corpus, self.shape, training, seed=seed, tokenizer=self.tokenizer)
        return step * self.trained.steps

    def _timed(self, key: str) -> float | None:
        """Return seconds in the plan, timed once so that all jobs choose the same levers; None: not timed."""
        path = self.folder / PLAN
        plan = read_record(path, dict[str, Any], remedy="delete it") if path.is_file() else {}
        return float(plan[key]) if key in plan else None

    def _counted(
        self, shape: ModelConfig, training: TrainConfig | None, tokenizer: PreTrainedTokenizerFast
    ) -> TrainingCost | None:
        if training is None:
            return None
        return training_cost(shape, training, self.train_split, tokenizer, seed=int(self.record["seed"]))

    def _tokenizer_of(self, lever: Lever) -> PreTrainedTokenizerFast:
        if lever.name != "tokenizer":
            return self.tokenizer
        if lever.model not in self._tokenizers:
            from truesource.lmtrain.subwords import make_tokenizer

            self._tokenizers[lever.model] = make_tokenizer(lever.model, self.train_split, lever.model.objective)
        return self._tokenizers[lever.model]

    @cached_property
    def _tokenizers(self) -> dict[ModelConfig, PreTrainedTokenizerFast]:
        return {}

    @cached_property
    def _train_oracle(self) -> Any:
        """Truth about the next word of the train split, in the vocabulary of the model."""
        setting = replace(self.setting, sentences=[], lengths=self.corpus.lengths, excluded=None)
        return setting.full_oracle(self.model)

    @property
    def seeds(self) -> list[int]:
        """Seeds of the model and of its levers; the first is the recorded seed of the model."""
        first = int(self.record["seed"])
        return [first + i for i in range(self.settings.trainings)]

    def cells(self) -> list[LeverCell]:
        """All trainings: levers by seeds, and the model itself with further seeds."""
        same = Lever("data", self.shape, base_training(self.trained))
        return [
            *(self._cell(BASE, same, seed) for seed in self.seeds[1:]),
            *(self._cell(lever.name, lever, seed) for lever in self.levers[0] for seed in self.seeds),
        ]

    def _cell(self, name: str, lever: Lever, seed: int) -> LeverCell:
        tokenizer = self._tokenizer_of(lever) if name != BASE else self.tokenizer
        request = TrainingRequest(
            model=lever.model,
            training=lever.training,
            seed=seed,
            corpus_digest=self.corpus.digest,
            tokenizer_digest=digest_tokenizer(tokenizer),
        ).as_record()
        del request["processes"]
        if lever.sentences is not None and name != BASE:
            request["fresh"] = lever.sentences
        if lever.expected:
            request["expected"] = self.setting.known.digest
        return LeverCell(name, seed, request)

    def lever_of(self, cell: LeverCell) -> Lever | None:
        """Return the lever of a training; None: the model itself."""
        return next((lever for lever in self.levers[0] if lever.name == cell.lever), None)

    @cached_property
    def vocabulary(self) -> ComparisonVocabulary | None:
        """The vocabulary that the model, its levers and the ladder are compared in; None: the model's."""
        objective = self.model.objective
        others: list[ModelWords] = []
        if self.unknown is None and any(lever.name == "tokenizer" for lever in self.levers[0]):
            others.append(ModelWords("pieces", objective, None, has_distributions=False))
        return self.setting.vocabularies([ModelWords.of(self.model), *others])[objective]

    def scored(self, model: LanguageModel) -> FloatArray:
        """Compute sums per sentence of a model in the vocabulary of comparison, (3, N): `Paired.table`.

        Raises:
            NothingToCompareError: no sentence is possible for the model and the truth.
        """
        return score_both(in_vocabulary(model, self.vocabulary), self.setting).paired.table()

    @cached_property
    def evaluation(self) -> str:
        """Digest of everything but weights that decides scores."""
        parts = {key: value for key, value in self.setting.parts(self.model).items() if key != "objective"}
        words = {} if self.vocabulary is None else {"vocabulary": digest_json(self.vocabulary.as_record())}
        return digest_json({key: str(value) for key, value in parts.items()} | words)

    def plan(self) -> dict[str, object]:
        """Return the trainings for JSON: settings, and change and cost of each lever."""
        levers = {lever.name: {"before": lever.before, "after": lever.after} for lever in self.levers[0]}
        return {
            "model": self.model.name,
            "settings": self.settings.model_dump(mode="json"),
            "levers": {name: {**description, **asdict(self.costs[name])} for name, description in levers.items()},
            "left_out": self.levers[1],
            **({} if self.unknown is not None else {"seconds_of_training": self._seconds_of_training}),
            **({"seconds_of_targets": self._seconds_of_targets} if "targets" in levers else {}),
            "cells": [] if self.unknown is not None else [cell.id for cell in self.cells()],
        }

    def ngram_rungs(self) -> Iterator[Rung]:
        """Yield n-gram models (modified Kneser-Ney) of the train split of the model, in its vocabulary."""
        tokenizer = self.tokenizer if self.unknown is None else None
        for order in ORDERS:
            settings = NgramSettings(architecture="ngram", order=order, min_count=1)
            with TemporaryDirectory(prefix="truesource-ladder-") as place:
                counted = train(self.corpus, settings, None, Path(place) / "model", seed=0, tokenizer=tokenizer)
                try:
                    table = self.scored(counted)
                except NothingToCompareError:
                    continue
            yield Rung("ngram", order - 1, table)

    def explain(self, share: Share) -> list[Failure[LeverCell]]:
        """Run and score a job's share of the trainings; finished ones are kept, interrupted ones resume.

        There are no trainings if the training of the model is `unknown`.
        """
        if self.unknown is not None:
            return []
        with exclusive(self.folder, wait=True):  # several jobs write the same file
            remove_leftovers(self.folder / PLAN)
            write_json(self.folder / PLAN, self.plan())
        return self.make_all(self.cells(), share)

    @override
    def is_finished(self, cell: LeverCell) -> bool:
        return self.table_of(cell) is not None

    @override
    def results(self, cell: LeverCell) -> tuple[Path, Path]:
        record = self.folder / "scores" / f"{cell.id}.json"
        return record.with_suffix(".npz"), record

    @override
    def train(self, cell: LeverCell) -> None:
        if (self.place(cell) / FILE).is_file():
            return
        lever = self.lever_of(cell)
        text: Any = self.corpus
        tokenizer, expected = self.tokenizer, None
        if lever is not None:
            tokenizer = self._tokenizer_of(lever)
            if lever.sentences is not None:
                text = _CorpusWithDev(self._fresh(lever.sentences), self.corpus)
            if lever.expected:
                expected = self._expected()
        training = base_training(self.trained) if lever is None else lever.training
        make = partial(train, seed=cell.seed, tokenizer=tokenizer, expected=expected, force=True)
        make(text, self._shape_of(cell), training, self.place(cell))

    @override
    def score(self, cell: LeverCell) -> None:
        place, (numbers, target) = self.place(cell), self.results(cell)
        sums = self.scored(load_trained(place, self._shape_of(cell)))
        record = {"cell": cell.id, "evaluation": self.evaluation, "record": digest_file(place / FILE)}
        with all_at_once((numbers, target)):  # even a kill never leaves old numbers next to a newer record
            with atomic_path(numbers) as temporary, temporary.open("wb") as stream:
                np.savez_compressed(stream, sums=sums)
            write_json(target, record)

    def _shape_of(self, cell: LeverCell) -> ModelConfig:
        lever = self.lever_of(cell)
        return self.shape if lever is None else lever.model

    def table_of(self, cell: LeverCell) -> FloatArray | None:
        """Return sums per sentence of a scored training, (3, N); None if it is not scored.

        Raises:
            InputError: the file is damaged.
        """
        numbers, path = self.results(cell)
        if not path.is_file() or not (self.place(cell) / FILE).is_file():
            return None
        remedy = "delete it, and it is computed again"
        record = read_record(path, dict[str, object], what=_WHAT, remedy=remedy)
        trained = digest_file(self.place(cell) / FILE)
        if (record.get("evaluation"), record.get("record")) != (self.evaluation, trained):
            return None
        arrays = read_arrays(numbers, {"sums": ArrayKind("f", (3, None))}, what=_WHAT, remedy=remedy)
        return np.asarray(arrays["sums"], dtype=np.float64)

    def _fresh(self, sentences: int) -> Corpus:
        """Sample a new text of the same language, once for all seeds."""
        from truesource.generator.corpus_builder import make_corpus
        from truesource.generator.plan import Columns, Plan

        path = self.folder / f"fresh-{sentences}"
        seed = int(digest_json({"fresh": sentences, "not": self.corpus.digest})[:8], 16)
        columns, lengths = Columns(trees="none"), self.corpus.lengths
        plan = Plan({"train": sentences}, seed, lengths, columns=columns, transform=self.setting.transform)
        with exclusive(path, wait=True):  # of several jobs that start together, the first samples
            make_corpus(self.setting.known, plan, path, workers=Workers(1), share=Share(), keep=True)
        return Corpus.load(path)

    def _expected(self) -> Any:
        """Return true distributions of the train split, written once for all seeds of this text and vocabulary."""
        request: dict[str, object] = {"truth": self.setting.known.digest, "text": self.corpus.digest}
        which = digest_json({**request, "tokenizer": digest_tokenizer(self.tokenizer)})
        path = self.folder / f"expected-{which[:8]}.npy"
        with exclusive(path, wait=True):
            remove_leftovers(path)
            if not path.is_file():
                assert self._targets is not None
                self._targets.write(path)
        return read_expected(path, request)


class _CorpusWithDev:
    """A corpus with the train split of one corpus and the dev split of another."""

    def __init__(self, text: Corpus, other: Corpus) -> None:
        self._text, self._other = text, other
        self.splits = ("train", *(("dev",) if "dev" in other.splits else ()))
        self.digest = digest_json([text.digest, other.digest])
        self.record = other.record

    def coded(self, split: str) -> CodedSentences:
        """Return a split."""
        return (self._text if split == "train" else self._other).coded(split)

    def sentences(self, split: str) -> Sequence[Sequence[str]]:
        """Return the words of the sentences of a split."""
        return self.coded(split)
