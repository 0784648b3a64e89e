"""`truesource evaluate beliefs`: maps from layers to exact beliefs, controls, and beliefs written into a layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from command_line import Command
from tiny_run import RunCopies

from truesource.evaluation.beliefs.evaluator import BeliefSettings
from truesource.evaluation.beliefs.reading import BeliefText, patch, read_beliefs
from truesource.evaluation.beliefs.report import _planes
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.show.figures import figure as new_figure
from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import language
from truesource.lmtrain.models import load_model
from truesource.run.experiment import execute, load_config

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]
SHAPE = {"dim": 16, "layers": 1, "heads": 2, "dropout": 0.0}
QUICK = {"max_steps": 200, "batch_tokens": 512, "eval_every": 100}
CONFIG: dict[str, Any] = {
    "name": "toy",
    "grammar": {"language": "mess3"},
    "corpus": {"splits": {"train": 2000, "dev": 50, "eval": 300}, "lengths": "4..12"},
    "models": [
        {"name": name, "model": {"architecture": name, **SHAPE}, "training": QUICK} for name in ("gpt2", "bert")
    ],
    "evaluation": {"beliefs": {"pairs": 60}},
}


@pytest.fixture(scope="module")
def place(finished_run: RunCopies) -> Path:
    """A finished run on text of Mess3, with a causal and a masked network."""

    def fill(folder: Path) -> None:
        (folder / "toy.yaml").write_text(yaml.safe_dump(CONFIG), "utf-8")
        execute(load_config(folder / "toy.yaml"), base=folder, runs=folder / "runs")

    return finished_run("beliefs", fill) / "runs" / "toy"


def called(*more: object, model: str = "gpt2", oracle: str = "mess3") -> tuple[object, ...]:
    return ("evaluate", "beliefs", f"models/{model}", "corpus", "--oracle", oracle, *more)


def values(record: list[dict[str, Any]], vectors: str, target: str) -> dict[int | None, float]:
    return {r["layer"]: r["value"] for r in record if (r["name"], r["vectors"], r["target"]) == ("r2", vectors, target)}


def test_a_trained_network_has_the_belief_in_its_layers(
    place: Path, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(place)
    files = ("--json", tmp_path / "b.json", "--figure", tmp_path / "b.svg")
    done = command(*called("--pairs", 60, *files))
    assert done.code == 0, done.err
    records = json.loads((tmp_path / "b.json").read_text("utf-8"))
    trained, other = values(records, "word", "state"), values(records, "untrained", "state")
    alone, two = (values(records, f"last-{k}-words", "state")[None] for k in (1, 2))
    own = values(records, "own-next-word", "state")[None]
    assert set(trained) == set(other) == {0, 1} and alone < two < 1.0
    assert trained[1] > max(0.85, trained[0] + 0.02, other[1]) and own > 0.8
    kl = {r["vectors"]: r["value"] for r in records if r["name"] == "patched_kl"}
    assert kl["own"] < kl["after"] < 0.6 * kl["before"] and kl["random"] > 0.8 * kl["before"]
    assert "the other belief written in" in done.out and (tmp_path / "b.svg").read_text("utf-8").startswith("<svg")


def test_masked_models_have_the_beliefs_given_all_words(
    place: Path, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(place)
    done = command(*called("--no-untrained", "--json", tmp_path / "b.json", model="bert"))
    assert done.code == 0, done.err
    records = json.loads((tmp_path / "b.json").read_text("utf-8"))
    assert {r["target"] for r in records} == {"outside", "inside-outside"}
    beside = {(r["target"], r["vectors"]) for r in records if r["layer"] is None and r["vectors"].endswith("-words")}
    assert beside == {("outside", f"next-{k}-words") for k in (1, 2)} | {
        ("inside-outside", f"last-{k}-words") for k in (1, 2)
    }
    outside = values(records, "word", "outside")
    assert outside[0] < 0.1 and outside[1] > 0.3  # before the first layer, a masked word knows its place alone
    assert {r["name"] for r in records} == {"r2"} and "untrained" not in {r["vectors"] for r in records}
    wrong = command(*called("--kinds", "open", model="bert"))
    assert wrong.code == 2 and "given the words before" in wrong.err


def test_the_exact_distribution_is_that_after_each_word(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the columns of the model, as one prefix after the other gives it."""
    monkeypatch.chdir(place)
    model, grammar, lengths = load_model("models/gpt2"), language("mess3"), LengthRange(4, 12)
    sentences = list(Corpus.load("corpus").sentences("eval"))[:30]
    asked = BeliefSettings(kinds=("next-word",), pairs=5, untrained=False)
    text = BeliefText(model, Setting(grammar, sentences, lengths), asked)
    oracle = Oracle(grammar, lengths=lengths)
    exact = text.true_log_probs(np.arange(len(text.sentence)))
    row = 0
    for words in text.sentences:
        for t in range(1, len(words) + 1):
            after = oracle.next_token(words[:t])
            known = dict(zip(after.words, after.probability, strict=True))
            wanted = [*(known.get(word, 0.0) for word in model.vocabulary or ()), 0.0, after.stop]
            np.testing.assert_allclose(np.exp(exact[row]), wanted, rtol=0.0, atol=1e-12)
            row += 1
    (reading,) = read_beliefs(text)
    assert reading.next_word is not None and reading.next_word.value > 0.3
    found = patch(text, reading)
    assert found is not None and found.pairs == 5 and found.other.value < found.before.value


@pytest.mark.parametrize(
    ("options", "oracle", "said"),
    [
        (("--kinds", "open,open"), "mess3", "name each once"),
        (("--sentences", 9), "mess3", "10"),
        ((), "shuffle-dyck:k=64,depth=100", "it has no rules"),
        (("--layers", "7"), "mess3", "there is no layer 7"),
    ],
)
def test_bad_calls_get_one_sentence(
    place: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[object, ...],
    oracle: str,
    said: str,
) -> None:
    monkeypatch.chdir(place)
    done = command(*called(*options, oracle=oracle))
    assert done.code == 2 and said in done.err and "Traceback" not in done.err


def test_the_run_has_pictures_and_a_section(place: Path) -> None:
    stage = json.loads((place / "beliefs/gpt2.json").read_text("utf-8"))
    assert set(stage["pictures"]["state"]) == {"layer", "share", "truth", "read", "colour"}
    page = (place / "report.html").read_text("utf-8")
    assert "Beliefs in the layers" in page and "the other belief written in" in page


def test_no_point_that_is_read_lies_outside_of_its_picture() -> None:
    points = {"truth": [[0.0, 0.0], [1.0, 1.0]], "read": [[-3.0, 0.5], [0.5, 4.0]]}
    with new_figure(6.0, 3.0, "planes") as drawn:
        panels = drawn.subplots(1, 2)
        _planes(panels, {**points, "colour": [[0.0, 0.0, 0.0]] * 2, "layer": 1, "share": 0.5})
        limits = [(axes.get_xlim(), axes.get_ylim()) for axes in panels]
    assert limits[0] == limits[1]
    (left, right), (bottom, top) = limits[0]
    assert left < -3.0 and right > 1.0 and bottom < 0.0 and top > 4.0
