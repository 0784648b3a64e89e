"""Requests that cannot be met: one sentence at once, and nothing is left half written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Command

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import LARGEST_NUMBER, NoRoomError
from truesource.lmtrain.architectures.settings import MOST_LAYERS, require_room
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.snapshots import MOST, schedule

TOY = "S -> S S 0.2 | A 0.3 | b 0.5\nA -> a A 0.4 | c 0.6\n"
HUGE = 10**20
TERA = 10**12

CONFIGURATION = """
name: run
grammar: {method: file, file: g.txt}
corpus: {splits: {train: 20, dev: 10, eval: 10}}
models:
  - {name: net, model: {architecture: gpt2}, training: {max_steps: 2}}
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g.txt").write_text(TOY, "utf-8")
    Path("t.txt").write_text("a c\nb\n" * 10, "utf-8")


@pytest.mark.parametrize(
    "call",
    [
        f"sample g.txt -o out -n {HUGE}",
        f"sample g.txt -o out -n {TERA}",
        f"sample g.txt -o out --tokens {10**18}",
        f"sample g.txt -o out -n {10**15} --shard-size 1",
        f"sample g.txt -o out -n 1000 --shard-size {HUGE}",
        f"sample g.txt -o out -n 1000 --lengths 2..{HUGE}",
        "sample g.txt -o out -n 1000 --lengths 2..1000000",
        f"sample g.txt -o out -n 1000 --max-height {TERA}",
        "sample g.txt -o out -n 1000 --temperature nan",
        f"train t.txt -o out --set model.layers={10**6}",
        f"train t.txt -o out --set model.layers={HUGE}",
        "train t.txt -o out --set model.layers=1e25",
        f"train t.txt -o out --set model.dim={TERA}",
        f"train t.txt -o out --set model.max_positions={10**15}",
        f"train t.txt -o out --set training.max_steps={HUGE}",
        "train t.txt -o out --set training.epochs=inf",
        "train t.txt -o out --set training.learning_rate=nan",
        f"train t.txt -o out --set model.tokenizer=bpe --set model.vocab_size={HUGE}",
        f"language dyck:depth={TERA}",
        f"language pool:languages={HUGE}",
        "tilt g.txt -o out --regex '.* c .{40}'",
        "tilt g.txt -o out --regex 'c{1,100000}'",
        f"tilt g.txt -o out --regex 'c{{1,{HUGE}}}'",
        f"tilt g.txt -o out --count c={HUGE}",
        "tilt g.txt -o out --count c=5000",
        "tilt g.txt -o out --count c=2 --beta nan",
        f"bound g.txt t.txt --lengths 1..{HUGE}",
        f"bound g.txt t.txt --longest {HUGE}",
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence(command: Command, call: str) -> None:
    import shlex

    done = command(*shlex.split(call))
    assert done.code == 2, done.err
    lines = [line for line in done.err.splitlines() if line.startswith("truesource: ")]
    assert len(lines) == 1 and "Traceback" not in done.err
    assert sorted(path.name for path in Path().iterdir()) == ["g.txt", "t.txt"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("train: 20", f"train: {HUGE}"),
        ("train: 20", f"train: {10**15}"),
        ("architecture: gpt2", "architecture: gpt2, layers: 1e25"),
        ("architecture: gpt2", f"architecture: gpt2, layers: {10**6}"),
        ("architecture: gpt2", f"architecture: gpt2, dim: {10**9}"),
        ("max_steps: 2", f"max_steps: {HUGE}"),
        ("splits:", f"lengths: 1..{TERA}, splits:"),
        ("splits:", f"shard_size: {HUGE}, splits:"),
        ("file: g.txt", "file: g.txt, tilt: {event: '.* c .{40}', probability: 0.5}"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_a_run_that_cannot_be_met_does_not_begin(command: Command, before: str, after: str, dry: bool) -> None:
    assert before in CONFIGURATION
    Path("c.yaml").write_text(CONFIGURATION.replace(before, after), "utf-8")
    done = command("run", "c.yaml", *(["--dry-run"] if dry else []))
    assert done.code == 2, done.err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tokens: 400000", f"tokens: {10**15}"),
        ("tokens: 400000", f"tokens: {HUGE}"),
        ("dev: 100", f"dev: {10**15}"),
        ("lengths: 2..60\n    longer: 62..120", "lengths: 2..100000\n    longer: 100002..200000"),
        ("lengths: 2..60\n    longer: 62..120", f"lengths: 2..60\n    longer: 62..{TERA}"),
    ],
)
def test_a_suite_that_cannot_be_met_does_not_begin(command: Command, before: str, after: str) -> None:
    from truesource.studies.benchmark.suite import suites

    text = suites()["tiny"].read_text("utf-8")
    assert before in text
    Path("s.yaml").write_text(text.replace(before, after), "utf-8")
    done = command("benchmark", "--suite", "s.yaml", "--model", "ngram", "--languages", "brackets", "-o", "out")
    assert done.code == 2, done.err
    assert not Path("out").exists()


def test_the_room_of_a_network_is_that_of_its_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.grammar.support.room.memory", lambda: 10**8)
    for architecture in ("gpt2", "llama", "opt", "bert", "roberta", "deberta", "lstm", "gated_cnn", "adaptive"):
        require_room(model_settings(architecture, layers=2, dim=128), 1000)
        with pytest.raises(NoRoomError) as refused:
            require_room(model_settings(architecture, layers=MOST_LAYERS, dim=128), 1000)
        assert refused.value.needed > 10**8
        with pytest.raises(NoRoomError):
            require_room(model_settings(architecture, layers=2, dim=128), 10**6)
    require_room(model_settings("ngram"))


def test_many_narrow_layers_are_refused_at_once(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.grammar.support.room.memory", lambda: 25 * 10**9)
    assert command("sample", "dyck:k=1", "-n", "200", "-o", "corpus").code == 0
    narrow = ("--set", "model.dim=64", "--set", f"model.layers={MOST_LAYERS}", "--set", "training.max_steps=2")
    done = command("train", "corpus", "-o", "model", "--model", "gpt2", *narrow)
    assert done.code == 2
    assert "GB are needed" in done.err and "training.batch_tokens" in done.err
    assert not Path("model").exists()


@pytest.mark.parametrize("architecture", ["gpt2", "llama", "opt", "bert", "roberta", "deberta", "lstm", "gated_cnn"])
@pytest.mark.parametrize("dim", [32, 128])
def test_layers_keep_as_much_of_a_token_as_estimated(architecture: str, dim: int) -> None:
    """Compare with the tensors that torch keeps for the gradient, within a factor of 2.5 (of DeBERTa, which keeps the
    vectors of relative positions, from below only).
    """
    import torch

    from truesource.lmtrain.model_registry import completed, network_architecture_for
    from truesource.lmtrain.tokenizer import build_tokenizer
    from truesource.lmtrain.word_vocabulary import WordVocabulary

    vocabulary = WordVocabulary(build_tokenizer([["a", "b"]]))
    kept = []
    for layers in (1, 2):
        shape = completed(model_settings(architecture, layers=layers, dim=dim))
        network = network_architecture_for(shape).build(shape, vocabulary).train()
        weights = {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}
        tensors = {}

        def keep(tensor: torch.Tensor, tensors: Any = tensors) -> torch.Tensor:
            tensors[tensor.untyped_storage().data_ptr()] = tensor
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            output = network(input_ids=torch.full((32, 8), 5))
        assert output.logits.shape[:2] == (32, 8)
        kept.append(sum(t.untyped_storage().nbytes() for place, t in tensors.items() if place not in weights))
    measured = (kept[1] - kept[0]) / (32 * 8 * 4)
    estimated = shape.least_activations  # type: ignore[attr-defined]
    assert estimated <= measured
    assert measured <= 2.5 * estimated or architecture == "deberta"


@pytest.mark.parametrize("architecture", ["gpt2", "llama", "opt", "bert", "roberta", "deberta", "lstm", "gated_cnn"])
def test_no_network_has_fewer_parameters_than_estimated(architecture: str) -> None:
    from truesource.lmtrain.model_registry import network_architecture_for
    from truesource.lmtrain.tokenizer import build_tokenizer
    from truesource.lmtrain.word_vocabulary import WordVocabulary

    settings = model_settings(architecture, layers=2, dim=16)
    vocabulary = WordVocabulary(build_tokenizer([["a", "b"]]))
    network = network_architecture_for(settings).build(settings, vocabulary)
    assert settings.least_parameters + len(vocabulary) * 16 <= network.num_parameters() <= 5 * settings.least_parameters


@pytest.mark.parametrize("settings", [{"snapshots": "linear"}, {"snapshots": "log", "snapshots_per_doubling": TERA}])
def test_snapshots_are_counted_before_they_are_listed(settings: dict[str, object]) -> None:
    config = TrainConfig(max_steps=LARGEST_NUMBER, **settings)
    with pytest.raises(InputError) as refused:
        schedule(config, LARGEST_NUMBER)
    assert refused.value.code == "too-large"
    assert len(schedule(TrainConfig(max_steps=10, snapshots="linear", snapshot_every=1), MOST)) == MOST + 1


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_is_no_larger_than_a_corpus_fills(kind: str) -> None:
    from truesource.lmtrain.subwords import build_subword_tokenizer

    sentences = [["abc", "abd", "cab"], ["bad", "cad"]] * 3
    many = [build_subword_tokenizer(sentences, kind, n).get_vocab() for n in (100, 10**10, LARGEST_NUMBER)]  # type: ignore[arg-type]
    assert many[0] == many[1] == many[2]


def test_steps_of_many_epochs_are_in_proportion() -> None:
    import numpy as np

    from truesource.lmtrain.data import TrainingBatches
    from truesource.lmtrain.tokenizer import build_tokenizer
    from truesource.lmtrain.word_vocabulary import WordVocabulary

    vocabulary = WordVocabulary(build_tokenizer([["a", "b"]]))
    rows = [np.array([5, 6]), np.array([6])]

    def steps(epochs: float) -> int:
        return TrainingBatches(rows, vocabulary, "causal", TrainConfig(epochs=epochs, batch_tokens=3), seed=1).n_steps

    assert steps(10**9) == 10**6 * steps(1000)
    with pytest.raises(InputError) as refused:
        steps(1e25)
    assert refused.value.code == "too-large"


@pytest.mark.parametrize("key", ["model.layers", "training.max_steps", "training.eval_every"])
def test_numbers_of_settings_fit_arrays(key: str) -> None:
    part, _, name = key.partition(".")
    with pytest.raises(InputError, match=f"{name}: expected"):
        if part == "model":
            model_settings("gpt2", **{name: 10**25})
        else:
            TrainConfig(**{"max_steps": 1, name: 10**25})


@pytest.mark.long
def test_an_event_may_hold_a_comma(command: Command) -> None:
    from truesource.cli.app import load

    commands = load("evaluate").commands
    for verb, name in (("control", "events"), ("pplu", "split_words"), ("dynamics", "only")):
        option = next(each for each in commands[verb].params if each.name == name)
        assert option.multiple
    sampled = command("sample", "g.txt", "-n", 100, "-o", "corpus")
    assert sampled.code == 0, sampled.err
    trained = command(
        "train", "corpus", "-o", "net", "--set", "training.max_steps=1", "--set", "model.dim=8",
        "--set", "model.layers=1",
    )  # fmt: skip
    assert trained.code == 0, trained.err
    done = command(
        "evaluate", "control", "net", "corpus", "--oracle", "g.txt", "--events", ".* c{1,3} .*", "--events", "c=1",
        "--best-of", 2, "--filters", 1, "--filtered", 3, "--samples", 10, "--json", "x.json",
    )  # fmt: skip
    assert done.code == 0, done.err
    import json

    assert {row["event"] for row in json.loads(Path("x.json").read_text("utf-8"))} == {".* c{1,3} .*", "c=1"}
    refused = command("evaluate", "control", "net", "corpus", "--oracle", "g.txt", "--filters", TERA)
    assert refused.code == 2 and not refused.out.count("Traceback")


WORDS = """
S -> NP VP 1
NP -> 'the' N 0.5 | N 0.3 | NP 'and' NP 0.2
N -> 'dog' 0.5 | 'cat' 0.5
VP -> 'runs' 0.6 | 'sees' NP 0.4
"""


@pytest.mark.parametrize("name", ["words.txt", "dyck:k=2", "copy"])
@pytest.mark.parametrize("trees", ["none", "ids"])
def test_no_corpus_is_smaller_than_estimated(
    name: str, trees: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truesource.generator import plan as plans

    Path("words.txt").write_text(WORDS)
    needed: list[float] = []
    monkeypatch.setattr(plans, "_MANY", 1)
    monkeypatch.setattr(plans, "require_disk", lambda what, size, folder, remedy: needed.append(size))
    done = command("sample", name, "-n", 5000, "-o", "corpus", "--trees", trees, "--shares", "train=1")
    assert done.code == 0, done.err
    written = sum(file.stat().st_size for file in Path("corpus", "data").iterdir())
    assert len(needed) == 2
    assert 5000 < needed[1] < written < 8 * needed[1]


def test_sentences_without_room_on_the_disk_are_refused(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from truesource.grammar.support import room

    Path("words.txt").write_text(WORDS)
    monkeypatch.setattr(room.shutil, "disk_usage", lambda path: SimpleNamespace(free=80 * 10**9))
    done = command("sample", "words.txt", "-n", 5 * 10**10, "-o", "corpus", "--trees", "none")
    assert done.code == 2
    assert "50,000,000,000 sentences: 131 GB are needed, and the disk has 80 GB" in done.err
    done = command("sample", "words.txt", "-n", 2 * 10**10, "-o", "corpus")
    assert "20,000,000,000 sentences with trees: 87.5 GB are needed" in done.err
    assert not Path("corpus").exists()


def test_a_range_that_is_too_long_is_answered_with_shorter_ones(command: Command) -> None:
    Path("words.txt").write_text(WORDS)
    refused = command("sample", "words.txt", "-n", 1000, "--lengths", "2..100000", "-o", "corpus")
    assert "choose lengths up to 20,000, which take seconds, or up to 89,442, which take about a minute" in refused.err
