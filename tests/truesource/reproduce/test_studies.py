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
from truesource.grammar.truth import process
from truesource.lmtrain.models import load_model
from truesource.lmtrain.truth import endless
from truesource.reproduce.found import Found
from truesource.reproduce.studies import STUDIES
from truesource.run.config import RunConfig, checked_config

FAMILY = "dirichlet-markov:vocabulary=3,mean_length=3,strings=3,concentration=1"
POOL = "pool:family=ngram/order=2/vocabulary=3/mean_length=3/concentration=1,languages=3,strings=3"
NETWORK = {
    "name": "net",
    "model": {"architecture": "lstm", "layers": 1, "dim": 8},
    "training": {"max_steps": 4, "batch_tokens": 64, "eval_every": 4},
}
Study = Callable[[str], tuple[Path, RunConfig, list[Found]]]


@pytest.fixture
def studied(tmp_path: Path, quick_report: None, one_thread: None) -> Study:
    """Run a pool with a network of two seeds, and study it."""

    def made(study: str) -> tuple[Path, RunConfig, list[Found]]:
        values: dict[str, Any] = {
            "name": "toy",
            "seeds": [3, 4],
            "grammar": {"language": POOL},
            "corpus": {"lengths": "6..20", "splits": {"train": 80, "dev": 10, "eval": 20}, "trees": "none"},
            "models": [NETWORK],
            "evaluation": {"documents": {"sentences": 20, "family": FAMILY}},
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
    folder, config, found = studied("fresh-documents")
    documents = next(endless(process(FAMILY), batch=20, seed=config.seed, lengths=config.corpus.lengths))
    for seed in (3, 4):
        model = load_model(folder / "models" / f"net-seed{seed}")
        oracle = Setting(process(FAMILY), documents, config.corpus.lengths).full_oracle(model)  # type: ignore[arg-type]
        wanted = measure_contexts(model, oracle, documents, top=1).column("kl").mean()  # type: ignore[arg-type]
        assert value(found, seed, name="kl", model="net", on="fresh", by=None) == pytest.approx(wanted, abs=1e-10)
        pool = {"model": "net", "on": "fresh", "by": "reader", "group": "pool"}
        assert value(found, seed, name="kl_family", **pool) > 0.0 < value(found, seed, name="family_above", **pool)


def test_the_perfect_reader_begins_without_knowing_and_models_pay_more(studied: Study) -> None:
    _, _, found = studied("sentences-until-known")
    assert value(found, None, model="reader", name="weight_own", sentence=1) == pytest.approx(1 / 3, abs=1e-9)
    for seed in (3, 4):
        for sentence in (1, 2, 3):
            told = {"name": "kl_told", "sentence": sentence}
            above = value(found, seed, model="net", **told) - value(found, None, model="reader", **told)
            assert value(found, seed, model="net", name="kl_above", sentence=sentence) == pytest.approx(above)
            assert above > 0.0
