"""What rows measure beside the evaluators, on runs of toy size, beside other ways to the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.contexts import measure_contexts
from truesource.evaluators import EVALUATORS
from truesource.experiment import execute
from truesource.generator.corpus import Corpus
from truesource.grammar.truth import load_truth
from truesource.lmtrain.models import load_model
from truesource.reproduce.found import Found
from truesource.reproduce.studies import STUDIES, readers_of_counts
from truesource.run.config import RunConfig, checked_config

FAMILY = "dirichlet-markov:vocabulary=3,mean_length=3,strings=3,concentration=1"
POOL = "pool:family=ngram/order=2/vocabulary=3/mean_length=3/concentration=1,languages=3,strings=3"
NETWORK = {
    "name": "net",
    "model": {"architecture": "lstm", "layers": 1, "dim": 8},
    "training": {"max_steps": 4, "batch_tokens": 64, "eval_every": 4, "snapshots": "log"},
}
Study = Callable[[str, str], tuple[Path, RunConfig, list[Found]]]


@pytest.fixture
def studied(tmp_path: Path, quick_report: None, one_thread: None) -> Study:
    """Run a language with a network of two seeds, and study it."""

    def made(language: str, study: str) -> tuple[Path, RunConfig, list[Found]]:
        values: dict[str, Any] = {
            "name": "toy",
            "seeds": [3, 4],
            "grammar": {"language": language},
            "corpus": {"lengths": "6..20", "splits": {"train": 80, "dev": 10, "eval": 20}, "trees": "none"},
            "models": [NETWORK],
            "evaluation": {"documents": {"sentences": 20, "family": FAMILY} if language == POOL else None},
        }
        config = checked_config(values, "toy.yaml", EVALUATORS)
        folder = execute(config, base=tmp_path, runs=tmp_path / "runs").parent
        return folder, config, STUDIES[study](folder, config)

    return made


def value(found: list[Found], seed: int | None, **fields: Any) -> float:
    """The number of the one record of a seed with these fields, and of no group."""
    (record,) = (
        each for each in found if each.seed == seed and all(each.fields.get(k) == v for k, v in fields.items())
    )
    return float(record.fields["value"])


def test_documents_of_new_languages_have_the_family_as_their_truth(studied: Study) -> None:
    _, _, found = studied(POOL, "fresh-documents")
    for seed in (3, 4):
        of = {"model": "net", "on": "fresh", "by": None}
        both = [value(found, seed, name=name, **of) for name in ("kl", "kl_family")]
        assert min(both) > 0.0
        assert sum(value(found, seed, name=f"weight_{name}", **of) for name in ("truth", "family")) == pytest.approx(1)
        paired = value(found, seed, name="kl_paired", **of)  # of the truth of these documents
        assert abs(paired - both[1]) < 0.3 and value(found, seed, name="truth_above", **of) > 0.0


def test_readers_along_training_are_those_of_their_own_truths(studied: Study) -> None:
    folder, config, found = studied(FAMILY, "predictors-along-training")
    documents = Corpus.load(folder / "corpus").sentences("eval")
    model = load_model(folder / "models" / "net-seed4")
    for name, order in (("unigram", 0), ("bigram", 1)):
        truth = load_truth(f"{FAMILY},order={order}")
        oracle = Setting(truth, documents, config.corpus.lengths).full_oracle(model)
        wanted = measure_contexts(model, oracle, documents, top=1).column("kl").mean()  # type: ignore[arg-type]
        assert value(found, 4, name=f"kl_{name}", step=4) == pytest.approx(wanted, abs=1e-10)
    assert {each.fields["step"] for each in found} == {0, 1, 2, 4} and {each.seed for each in found} == {3, 4}
    uniform = readers_of_counts(load_truth(FAMILY).name)["uniform"]  # type: ignore[attr-defined]
    law = uniform.next_token(["w1", "w1", "w1"]).probability[:3]
    assert law / law.sum() == pytest.approx(1 / 3, abs=1e-3)


def test_the_perfect_reader_begins_without_knowing_and_models_pay_more(studied: Study) -> None:
    _, _, found = studied(POOL, "sentences-until-known")
    assert value(found, None, model="reader", name="weight_own", sentence=1) == pytest.approx(1 / 3, abs=1e-9)
    for seed in (3, 4):
        for sentence in (1, 2, 3):
            told = {"name": "kl_told", "sentence": sentence}
            above = value(found, seed, model="net", **told) - value(found, None, model="reader", **told)
            assert value(found, seed, model="net", name="kl_above", sentence=sentence) == pytest.approx(above)
            assert above > 0.0
