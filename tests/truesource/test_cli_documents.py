"""`truesource evaluate documents` of networks: along their training, with several strategies, and too long ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

from truesource.evaluation.documents import report as results
from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.truth import load_truth
from truesource.lmtrain.snapshots import checkpoints

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]

POOL = "pool:family=ngram/order=2/vocabulary=3/mean_length=3,languages=4,strings=3"
FAMILY = "dirichlet-markov:vocabulary=3,mean_length=3,strings=3"
STRATEGIES = {
    "uniform": f"{FAMILY},order=0,concentration=1e12",
    "unigram": f"{FAMILY},order=0",
    "bigram": FAMILY,
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of documents, a network with snapshots and an n-gram model."""
    from truesource.lmtrain.config import TrainConfig
    from truesource.lmtrain.model_registry import model_settings
    from truesource.lmtrain.training import train

    folder = tmp_path_factory.mktemp("documents")
    sizes = {"train": 200, "eval": 60}
    corpus = Corpus.sample(load_truth(POOL), sizes, seed=4, lengths=LengthRange(3, 14), path=folder / "documents")
    small = model_settings(architecture="gpt2", layers=1, heads=2, dim=8, max_positions=16)
    train(corpus, small, TrainConfig(max_steps=2, snapshots="log"), folder / "net", seed=1)
    train(corpus, model_settings(architecture="ngram"), None, folder / "ngram", seed=1)
    return folder


@pytest.fixture
def trained(models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The working folder, with these."""
    monkeypatch.chdir(tmp_path)
    for name in ("documents", "net", "ngram"):
        Path(name).symlink_to(models / name)
    return tmp_path


def test_strategies_along_a_training_are_those_of_each_snapshot(trained: Path, command: Command) -> None:
    call = ("evaluate", "documents", "documents", "--oracle", "documents/grammar.npz")
    for name, language in STRATEGIES.items():
        call += ("--family", f"{name}={language}")

    def measured(model: str, *options: str) -> list[dict[str, Any]]:
        said = command(*call[:2], model, *call[2:], *options, "--json", "found.json", "--force")
        assert said.code == 0, said.err
        return json.loads(Path("found.json").read_text("utf-8"))

    found = measured("net", "--snapshots", "--figure", "along.svg")
    steps = [step for step, _ in checkpoints("net")]
    along = [each for each in found if each.get("by") == "step"]
    assert list(dict.fromkeys(each["group"] for each in along)) == [str(step) for step in steps]

    def rows(records: list[dict[str, Any]], **place: str) -> dict[tuple[str, str], list[float]]:
        kept = [each for each in records if place.items() <= each.items()]
        key = "group" if place.get("by") == "reader" else "reader"
        return {(each["name"], each.get(key, "")): [each["value"], each["low"], each["high"]] for each in kept}

    for step, path in checkpoints("net"):
        alone = measured(str(path))
        whole = rows([each for each in alone if "by" not in each]) | rows(alone, by="reader")
        assert rows(along, group=str(step)) == whole
        weights = {name: values for name, values in whole.items() if "weight" in name[0]}
        assert [name[1] for name in weights] == ["", *STRATEGIES]
        assert sum(value for value, _, _ in weights.values()) == pytest.approx(1.0, abs=1e-9)
        assert all(low <= value <= high for value, low, high in weights.values())
    first = rows(along, group="0")
    assert first["weight_family", "uniform"][0] > 0.8  # before a network has learned
    drawn = Path("along.svg").read_text("utf-8")
    assert "training step (logarithmic)" in drawn and "KL(unigram‖model)" in drawn and "weight in the nearest" in drawn
    refused = command("evaluate", "documents", "ngram", *call[2:], "--snapshots")
    assert refused.code == 2 and "an n-gram model has no steps" in refused.err


def test_documents_longer_than_the_context_are_refused_before_any_work(
    trained: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it has begun")

    monkeypatch.setattr(results, "documents_read", never)
    Path("long.txt").write_text("w1 <sep> w2 <sep> w1\nw1 <sep>" + " w1" * 20 + " <sep> w2\n", encoding="utf-8")
    said = command("evaluate", "documents", "net", "long.txt", "--oracle", "documents/grammar.npz", "--lengths", "none")
    assert said.code == 2
    assert "sentence 2 has 24 words, but the model takes at most 15; leave it out or train with more" in said.err


def test_two_models_are_compared_on_documents(trained: Path, command: Command) -> None:
    oracle = ("documents", "--oracle", "documents/grammar.npz")
    said = command("compare", "net", "ngram", *oracle, "--evaluators", "documents", "--json", "compared.json")
    assert said.code == 0, said.err
    compared = json.loads(Path("compared.json").read_text("utf-8"))
    for model in ("net", "ngram"):
        assert command("evaluate", "documents", model, *oracle, "--json", "one.json", "--force").code == 0
        alone = {each["name"]: each for each in json.loads(Path("one.json").read_text("utf-8")) if "by" not in each}
        beside = {r["name"]: r for r in compared if r.get("model") == model and "by" not in r}
        for name in ("kl", "entropy", "regret"):
            assert beside[name]["value"] == pytest.approx(alone[name]["value"], abs=1e-12)
    assert "regret of a perfect reader" in said.out
