"""The cost of a suite before anything is trained: parameters, floating-point operations and hours of each model."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell
from truesource.evaluation.show.words import duration
from truesource.generator.columns import CodedSentences
from truesource.generator.plan import mean_length
from truesource.generator.process_sampler import sampler_of
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords
from truesource.grammar.truth import load_truth, word_counts
from truesource.lmtrain.device import one_thread
from truesource.studies.benchmark.results import has_truth
from truesource.studies.benchmark.suite import Suite, SuiteLanguage

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from truesource.generator.objectives import Objective
    from truesource.lmtrain.config import ModelConfig, TrainConfig
    from truesource.lmtrain.training_record import TimesRow

UTILISATION = 0.1  #: share of a GPU's peak that networks of these sizes are assumed to reach
COUNTED_TOKENS = 1024  #: most tokens of a batch whose operations are counted; larger ones have the same number a token
SAMPLED_BATCHES = 32  #: number of batches sampled for each language
WARM_UP_STEPS = 2  #: not timed
TIMED_STEPS = 1000  #: at most; the time ends the timing first
TIMED_SECONDS = 6.0  #: of training, for each model
LEAST_TIMED = 3  #: steps, however long they take


class PlannedModel(Protocol):
    """A model whose settings on each language are known."""

    @property
    def name(self) -> str:
        """Name of the model in tables."""

    @property
    def trained(self) -> bool:
        """True if it is trained, or counted; the truth and the word frequencies are not."""

    def resolve(self, suite: Suite, language: SuiteLanguage) -> tuple[ModelConfig, TrainConfig | None]:
        """Return its full settings on a language; no training settings for a model that counts."""


@dataclass(frozen=True, kw_only=True)
class PlannedTraining:
    """The training of a model on one language with one seed."""

    parameters: int  #: without word and position vectors
    steps: int
    tokens: int  #: seen, about
    flops: int  #: of all steps


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """A model on all languages with all seeds of a suite."""

    name: str
    seeds: int
    trainings: Mapping[str, PlannedTraining]  #: by language, of one seed
    rate: float | None  #: floating-point operations a second that were timed here; None: not timed

    @property
    def parameters(self) -> tuple[int, int]:
        """Fewest and most of any language, without word and position vectors."""
        counts = [training.parameters for training in self.trainings.values()]
        return min(counts), max(counts)

    @property
    def n_trainings(self) -> int:
        """Languages times seeds."""
        return self.seeds * len(self.trainings)

    @property
    def tokens(self) -> int:
        """Training tokens of all trainings."""
        return self.seeds * sum(training.tokens for training in self.trainings.values())

    @property
    def flops(self) -> int:
        """Floating-point operations of all trainings."""
        return self.seeds * sum(training.flops for training in self.trainings.values())

    def hours(self, rate: float) -> float:
        """Return the hours of all trainings in turn, at so many floating-point operations a second."""
        return self.flops / rate / 3600.0

    @property
    def hours_here(self) -> float | None:
        """Hours on the device that was timed; None if none was."""
        return None if self.rate is None else self.hours(self.rate)


@dataclass(frozen=True, kw_only=True, repr=False)
class SuitePlan(ResultRecords):
    """The cost of training the models of a suite; measuring them comes on top."""

    suite: Suite
    models: Sequence[ModelPlan]
    device: str  #: device of the timed steps: ``one core`` or ``one GPU``
    flops_per_second: float | None  #: peak of the GPU that is planned for; None: none is
    utilisation: float  #: assumed share of that peak

    def rows(self) -> list[dict[str, object]]:
        """Return one row a model: parameters, trainings, tokens, operations, hours."""
        rate = self.gpu_rate
        return [
            {
                "model": model.name,
                "parameters_low": model.parameters[0],
                "parameters_high": model.parameters[1],
                "trainings": model.n_trainings,
                "tokens": model.tokens,
                "flops": model.flops,
                "flops_per_second": model.rate,
                "hours_here": model.hours_here,
                "device": self.device,
                "hours_planned_gpu": None if rate is None else model.hours(rate),
            }
            for model in self.models
        ]

    @property
    def gpu_rate(self) -> float | None:
        """Floating-point operations a second that are assumed of the GPU."""
        return None if self.flops_per_second is None else self.flops_per_second * self.utilisation


def plan_suite(
    suite: Suite,
    models: Sequence[PlannedModel],
    *,
    languages: Sequence[str] | None = None,
    seeds: int | None = None,
    flops_per_second: float | None = None,
    utilisation: float = UTILISATION,
    seconds: float = TIMED_SECONDS,
) -> SuitePlan:
    """Count what training costs, and time some steps of each model on this machine: on its GPU, or on one core.

    Operations are counted on a real batch of each language, see `truesource.lmtrain.flops.count_flops`, of at most
    `COUNTED_TOKENS` tokens. Words are those that are expected often enough in the train split.

    Args:
        suite: with the budget.
        models: models that are not trained in steps are excluded.
        languages: names in the suite; None: all.
        seeds: number of seeds; None: as in the suite.
        flops_per_second: peak of a GPU, for the precision that models are trained in; None: no GPU is planned for.
        utilisation: share of that peak that training is assumed to reach.
        seconds: time for timing steps of each model, on the first language; 0: none.

    Raises:
        InputError: the peak or the utilisation is out of range, or settings of a model are wrong.
    """
    if flops_per_second is not None and not 0.0 < flops_per_second < float("inf"):
        raise InputError(f"operations a second must be above 0, got {flops_per_second:g}", code="no-throughput")
    if not 0.0 < utilisation <= 1.0:
        raise InputError(f"a utilisation is above 0 and at most 1, got {utilisation:g}", code="no-utilisation")
    texts = {name: _PlannedText.of(suite, suite.languages[name]) for name in languages or suite.languages}
    plans = [_plan_model(model, texts, seeds or len(suite.training.seeds), seconds) for model in models]
    return SuitePlan(
        suite=suite,
        models=[plan for plan in plans if plan is not None],
        device=_device(),
        flops_per_second=flops_per_second,
        utilisation=utilisation,
    )


def plan_table(plan: SuitePlan) -> ReportTable:
    """Return the parameters, operations and hours of each model."""
    columns = ["model", "parameters", "trainings", "tokens", "FLOPs", "GFLOP/s\nhere", f"hours\n{plan.device} here"]
    rate = plan.gpu_rate
    if rate is not None:
        columns.append("hours\nplanned GPU")
    rows = []
    for model in plan.models:
        cells: list[Cell | str | None] = [
            model.name,
            _range(*model.parameters),
            number_cell(model.n_trainings, ","),
            number_cell(model.tokens, ".3g"),
            number_cell(model.flops, ".3g"),
            None if model.rate is None else number_cell(model.rate / 1e9, ".1f"),
            _hours(model.hours_here),
        ]
        rows.append(TableRow([*cells, *([] if rate is None else [_hours(model.hours(rate))])]))
    return ReportTable(columns=columns, rows=rows, title=f"What suite {plan.suite.label} costs", note=_note(plan))


def _note(plan: SuitePlan) -> str:
    parts = [
        "All languages and seeds, one training after the other; exact truth and measuring come on top. Parameters are"
        " without word and position vectors. FLOPs are counted on a batch of each language.",
    ]
    if any(model.rate is not None for model in plan.models):
        parts.append(
            f"Hours here follow from steps that were timed on {plan.device} of this machine; a busy machine is slower."
        )
    if plan.flops_per_second is not None:
        parts.append(
            f"Hours of the planned GPU are not measured: {plan.utilisation:.0%} of {plan.flops_per_second:.3g}"
            " operations a second."
        )
    return " ".join(parts)


def _range(low: int, high: int) -> Cell:
    return Cell(f"{low:,}" if low == high else f"{low:,} to {high:,}", score=(low, low, high))


def _hours(hours: float | None) -> Cell | None:
    if hours is None:
        return None
    return Cell(f"{hours:.3g}" if hours >= 0.1 else duration(3600.0 * hours), score=(hours, None, None))


def sampled_tokens(batch_tokens: int) -> int:
    """Return the approximate number of tokens that are sampled of each language."""
    return SAMPLED_BATCHES * min(batch_tokens, COUNTED_TOKENS)


@dataclass(frozen=True, eq=False)
class _PlannedText:
    """A language of a suite, with enough strings for the first batches."""

    suite: Suite
    language: SuiteLanguage
    strings: CodedSentences
    words: Sequence[str]  #: expected `SuiteTraining.min_count` times in the train split, or more often

    @classmethod
    def of(cls, suite: Suite, language: SuiteLanguage) -> _PlannedText:
        truth, budget = load_truth(language.language), suite.training
        mean = mean_length(truth, language.range, None) + 1.0
        sampler = sampler_of(truth, language.range)
        n = max(2, round(sampled_tokens(budget.batch_tokens) / mean))
        strings = sampler.sentences(sampler.draw(n, random_state(suite.seed)))
        expected = word_counts(truth, language.range) / mean * budget.tokens
        words = [word for word, times in zip(truth.vocabulary, expected, strict=True) if times >= budget.min_count]
        return cls(suite, language, CodedSentences.of(strings), words)

    def tokenizer(self, objective: Objective) -> PreTrainedTokenizerFast:
        """Make the tokeniser of the words that models are expected to know."""
        from truesource.lmtrain.tokenizer import build_tokenizer

        return build_tokenizer([self.words], objective=objective)

    def training(self, shape: ModelConfig, settings: TrainConfig) -> PlannedTraining:
        """Return the cost of one training."""
        from truesource.lmtrain.flops import training_cost

        counted = _counted(settings)
        cost = training_cost(shape, counted, self.strings, self.tokenizer(shape.objective), seed=self.suite.seed)
        tokens = self.suite.training.tokens
        grown = settings.batch_tokens * settings.accumulation / (counted.batch_tokens * counted.accumulation)
        steps = max(1, round(tokens / (cost.tokens_per_step * grown)))
        return PlannedTraining(
            parameters=cost.parameters.without_embeddings,
            steps=steps,
            tokens=tokens,
            flops=round(cost.flops_per_step * grown * steps),
        )


def _counted(settings: TrainConfig) -> TrainConfig:
    """Return the same training with batches that are small enough to be counted."""
    return settings.model_copy(update={"batch_tokens": min(settings.batch_tokens, COUNTED_TOKENS), "accumulation": 1})


def _plan_model(model: PlannedModel, texts: Mapping[str, _PlannedText], seeds: int, seconds: float) -> ModelPlan | None:
    """Return the plan of a model; None: it is not trained in steps, or cannot be measured on any language."""
    if not model.trained:
        return None
    trainings, rate = {}, None
    for name, text in texts.items():
        shape, settings = model.resolve(text.suite, text.language)
        if settings is None:
            return None
        if not has_truth(text.language.language, shape.objective):
            continue
        trainings[name] = text.training(shape, settings)
        if rate is None and seconds > 0.0:
            rate = _timed(text, shape, settings, seconds)
    return ModelPlan(name=model.name, seeds=seeds, trainings=trainings, rate=rate) if trainings else None


def _timed(text: _PlannedText, shape: ModelConfig, settings: TrainConfig, seconds: float) -> float:
    """Time training steps on this machine: operations a second; without a GPU, in one thread."""
    from truesource.lmtrain.flops import training_cost

    counted = _counted(settings).model_copy(update={"epochs": None, "eval_every": 1, "snapshots": "none"})
    long = counted.model_copy(update={"max_steps": TIMED_STEPS, "max_seconds": seconds})
    short = counted.model_copy(update={"max_steps": WARM_UP_STEPS + LEAST_TIMED, "max_seconds": None})
    tokenizer = text.tokenizer(shape.objective)
    flops = training_cost(shape, short, text.strings, tokenizer, seed=text.suite.seed).flops_per_step
    for settings in (long, short):  # the short one where the time does not suffice
        rows = _times(text, shape, settings, tokenizer)
        if rows[-1]["step"] >= WARM_UP_STEPS + LEAST_TIMED:
            break
    done = np.array([(row["step"], row["seconds"]) for row in rows if row["step"] >= WARM_UP_STEPS])
    taken, spent = done[-1] - done[0]
    return float(flops * taken / spent)


def _times(
    text: _PlannedText, shape: ModelConfig, settings: TrainConfig, tokenizer: PreTrainedTokenizerFast
) -> list[TimesRow]:
    """Return the time at which each step of a training was done."""
    from truesource.lmtrain.training import train
    from truesource.lmtrain.training_record import read_times

    with tempfile.TemporaryDirectory(prefix="truesource-plan-") as folder, one_thread():
        out = Path(folder) / "model"
        train(text.strings, shape, settings, out, seed=text.suite.seed, tokenizer=tokenizer)
        return read_times(out)


def _device() -> str:
    import torch

    return "one GPU" if torch.cuda.is_available() else "one core"
