"""What a suite costs: operations against an independent count of the same batch, hours against operations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain import training_record as times
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.data import Batch, causal_batch
from truesource.lmtrain.flops import count_flops, count_parameters
from truesource.lmtrain.model_registry import network_architecture_for
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.word_vocabulary import WordVocabulary
from truesource.run.models import ModelEntry
from truesource.studies.benchmark import planning
from truesource.studies.benchmark.planning import (
    COUNTED_TOKENS,
    ModelPlan,
    PlannedTraining,
    SuitePlan,
    plan_suite,
    plan_table,
)
from truesource.studies.benchmark.suite import Suite, SuiteLanguage

WORDS = 8  #: of every string, so that all batches have one shape
ROWS = 10  #: of a batch
LANGUAGES = {
    "one": "random-hierarchy:depth=3,symbols=4,productions=2",
    "two": "random-hierarchy:depth=3,symbols=6,productions=3,seed=2",
}


def suite(tokens: int = 9000, batch_tokens: int = ROWS * (WORDS + 1)) -> Suite:
    return Suite(
        name="toy",
        version=1,
        title="Two languages of one length",
        seed=1,
        languages={
            name: SuiteLanguage(language=reference, kind="toy", tests="nothing", lengths=f"{WORDS}..{WORDS}")
            for name, reference in LANGUAGES.items()
        },
        training={
            "tokens": tokens,
            "batch_tokens": batch_tokens,
            "points": 2,
            "parameters": 10**6,
            "seeds": [1, 2, 3],
        },
        sizes={"dev": 10, "test": 20, "longer": 20, "blocks": 10},
    )


class Model:
    """A model of a suite with fixed settings."""

    def __init__(self, name: str = "gpt2", *, trained: bool = True, **shape: Any) -> None:
        self.name, self.trained, self._shape = name, trained, shape

    def resolve(self, suite: Suite, language: SuiteLanguage) -> tuple[ModelConfig, TrainConfig | None]:
        counts = self._shape.get("architecture") == "ngram"
        settings = {} if counts else {"epochs": 1.0, "batch_tokens": suite.training.batch_tokens}
        shape = {"architecture": "gpt2", "layers": 1, "dim": 8, "heads": 2, **self._shape}
        return ModelEntry(name=self.name, model=self._shape if counts else shape, training=settings).resolve()


def only(plan: SuitePlan) -> ModelPlan:
    (found,) = plan.models
    return found


def batch_of(reference: str) -> tuple[Batch, WordVocabulary]:
    """A batch of the shape that all batches of a language have; which words it holds does not change the count."""
    vocabulary = WordVocabulary(build_tokenizer([PCFG.load(reference).vocabulary]))
    return causal_batch([np.arange(5, 5 + WORDS) % len(vocabulary)] * ROWS, vocabulary), vocabulary


@pytest.mark.long
def test_operations_are_steps_times_those_of_a_batch() -> None:
    plan = only(plan_suite(suite(), [Model()], seconds=0))
    total = 0
    for name, reference in LANGUAGES.items():
        batch, vocabulary = batch_of(reference)
        shape, _ = Model().resolve(suite(), suite().languages[name])
        network = network_architecture_for(shape).build(shape, vocabulary)
        found = plan.trainings[name]
        assert found.steps == 9000 // (ROWS * (WORDS + 1))
        assert found.flops == found.steps * count_flops(network, "lm_head", batch)
        assert found.parameters == count_parameters(network).without_embeddings
        total += found.flops
    assert plan.flops == 3 * total
    assert plan.n_trainings == 6
    assert plan.tokens == 6 * 9000


@pytest.mark.long
def test_languages_and_seeds_can_be_fewer() -> None:
    whole = only(plan_suite(suite(), [Model()], seconds=0))
    part = only(plan_suite(suite(), [Model()], languages=["two"], seeds=2, seconds=0))
    assert part.flops == 2 * whole.trainings["two"].flops


@pytest.mark.long
def test_operations_are_linear_in_tokens() -> None:
    once, twice = (only(plan_suite(suite(tokens), [Model()], seconds=0)) for tokens in (9000, 18000))
    assert twice.flops == 2 * once.flops


@pytest.mark.long
def test_large_batches_cost_as_much_a_token_as_those_that_are_counted() -> None:
    """Steps are somewhat more than tokens by size of a batch: the last batch of a pool of strings is small."""
    tokens = 10**7
    large = only(plan_suite(suite(tokens, 16 * COUNTED_TOKENS), [Model()], languages=["one"], seconds=0))
    small = only(plan_suite(suite(tokens), [Model()], languages=["one"], seconds=0))
    assert large.trainings["one"].steps == pytest.approx(tokens / (16 * COUNTED_TOKENS), rel=0.1)
    assert large.flops == pytest.approx(small.flops, rel=0.01)


def test_hours_are_operations_over_throughput() -> None:
    training = PlannedTraining(parameters=10, steps=5, tokens=100, flops=36 * 10**12)
    plan = ModelPlan(name="any", seeds=2, trainings={"one": training, "two": training}, rate=1e10)
    assert plan.hours(1e12) == pytest.approx(4 * 36 / 3600)
    assert plan.hours(2e12) == plan.hours(1e12) / 2
    assert plan.hours_here == pytest.approx(4.0)


def test_hours_of_a_gpu_follow_from_its_peak_and_the_utilisation() -> None:
    planned = plan_suite(suite(), [Model()], flops_per_second=1e14, utilisation=0.25, seconds=0)
    assert planned.gpu_rate == 2.5e13
    assert plan_suite(suite(), [], seconds=0).gpu_rate is None


@pytest.mark.long
def test_throughput_is_that_of_the_steps_after_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps take 1 s in the warm-up and half a second afterwards, says the clock."""
    ends = [0.0, 1.0, 2.0, 2.5, 3.0, 3.5]
    rows = [{"step": step, "seconds": end} for step, end in enumerate(ends)]
    monkeypatch.setattr(times, "read_times", lambda folder: rows)
    plan = only(plan_suite(suite(), [Model()], seconds=0.2))
    first = plan.trainings["one"]
    assert plan.rate == pytest.approx(2.0 * first.flops / first.steps)


@pytest.mark.long
def test_slow_steps_are_timed_too() -> None:
    """Where the time ends before enough steps are done, a fixed number of them is timed."""
    plan = only(plan_suite(suite(), [Model()], seconds=1e-9))
    assert plan.rate is not None
    assert plan.rate > 0.0


def test_models_that_are_not_trained_in_steps_cost_nothing() -> None:
    models = [Model("oracle", trained=False), Model("ngram", architecture="ngram"), Model()]
    assert [plan.name for plan in plan_suite(suite(), models, seconds=0).models] == ["gpt2"]


@pytest.mark.long
def test_the_table_shows_a_planned_gpu_only_where_there_is_one() -> None:
    without = plan_table(plan_suite(suite(), [Model()], seconds=0))
    having = plan_table(plan_suite(suite(), [Model()], flops_per_second=1e9, utilisation=0.5, seconds=0))
    assert len(having.columns) == len(without.columns) + 1
    assert [len(row.cells) for row in having.rows] == [len(having.columns)]
    assert [len(row.cells) for row in without.rows] == [len(without.columns)]
    assert "50%" in having.note
    assert "50%" not in without.note


@pytest.mark.long
def test_the_note_speaks_of_timed_steps_only_where_steps_were_timed() -> None:
    timed = plan_table(plan_suite(suite(), [Model()], languages=["one"], seconds=1e-9))
    counted = plan_table(plan_suite(suite(), [Model()], languages=["one"], seconds=0))
    assert "timed" in timed.note
    assert "timed" not in counted.note


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"flops_per_second": 0.0}, "no-throughput"),
        ({"flops_per_second": float("nan")}, "no-throughput"),
        ({"utilisation": 0.0}, "no-utilisation"),
        ({"utilisation": 1.5}, "no-utilisation"),
    ],
)
def test_impossible_throughputs_are_refused(given: dict[str, float], code: str) -> None:
    with pytest.raises(InputError) as refused:
        plan_suite(suite(), [], seconds=0, **given)
    assert refused.value.code == code


@pytest.mark.long
def test_a_word_is_known_where_it_is_expected_often_enough() -> None:
    english = suite().languages["one"].model_copy(update={"language": "english:size=small", "lengths": "3..30"})
    sizes = []
    for least in (1, 50):
        training = suite().training.model_copy(update={"min_count": least})
        asked = suite().model_copy(update={"training": training})
        sizes.append(len(planning._PlannedText.of(asked, english).words))
    assert 0 < sizes[1] < sizes[0] < len(PCFG.load("english:size=small").vocabulary)


def test_words_are_expected_under_the_lengths_of_a_language(tmp_path: Path) -> None:
    """Of 500 strings of one word, given that length: 26.3 are b, where the grammar alone has 24.4 b, and 48.8 c."""
    PCFG.from_text("S -> 'a' 0.9 | 'b' 0.05 | C C 0.05\nC -> 'c' 1.0\n").save(tmp_path / "toy.npz")
    language = suite().languages["one"].model_copy(update={"language": str(tmp_path / "toy.npz"), "lengths": "1..1"})
    training = suite().training.model_copy(update={"tokens": 1000, "min_count": 25})
    text = planning._PlannedText.of(suite().model_copy(update={"training": training}), language)
    assert sorted(text.words) == ["a", "b"]
