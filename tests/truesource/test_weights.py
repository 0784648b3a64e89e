"""The weights of another model to start from, on the command line and in a configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command
from tiny_run import prepare, run

from truesource.grammar.support.errors import InputError
from truesource.run.experiment import load_config

pytestmark = pytest.mark.long

GRAMMAR = "S -> 'a' S 0.3 | 'b' S 0.3 | 'a' 0.2 | 'c' 0.2\n"
CONFIG = """\
name: toy
grammar: {method: file, file: toy.txt}
corpus: {lengths: 1..6, splits: {train: 60, dev: 5, eval: 20}}
models:
  - name: net
    model: {layers: 1, heads: 2, dim: 8, max_positions: 12}
    training: {max_steps: 2, eval_every: 2}
    weights: first
"""
SIZE = ("model.layers=1", "model.heads=2", "model.dim=8", "model.max_positions=12", "training.max_steps=2")


def made(command: Command, folder: Path, *options: object) -> str:
    (folder / "text.txt").write_text("a x\nx x\n" * 10, encoding="utf-8")
    sets = [part for each in SIZE for part in ("--set", each)]
    done = command("train", folder / "text.txt", *sets, *options)
    return done.err if done.code else ""


@pytest.mark.usefixtures("one_thread")
def test_a_command_starts_from_weights(command: Command, tmp_path: Path) -> None:
    assert made(command, tmp_path, "-o", tmp_path / "first") == ""
    weights = ("--weights", tmp_path / "first")
    assert made(command, tmp_path, "-o", tmp_path / "second", *weights) == ""
    assert "weights_digest" in json.loads((tmp_path / "second" / "training.json").read_text("utf-8"))
    assert "another size" in made(command, tmp_path, "-o", tmp_path / "m", *weights, "--set", "model.layers=2")
    counted = command("train", tmp_path / "text.txt", "-o", tmp_path / "m", *weights, "--model", "ngram")
    assert "weights: ngram is an n-gram model without initial weights" in counted.err
    assert "no such model folder" in made(command, tmp_path, "-o", tmp_path / "m", "--weights", tmp_path / "none")
    cited = command("cite", tmp_path / "second")
    assert "Chomsky" in cited.out and "Chomsky" not in command("cite", tmp_path / "first").out


@pytest.mark.usefixtures("one_thread", "quick_report")
def test_a_run_trains_again_when_the_weights_change(command: Command, tmp_path: Path) -> None:
    folder = prepare(tmp_path, CONFIG, GRAMMAR)
    with pytest.raises(InputError, match="models: net: there is no such model folder") as refused:
        run(folder)
    assert refused.value.code == "missing"
    assert made(command, folder, "-o", folder / "first") == ""
    assert "train:net" in run(folder)
    assert "train:net" not in run(folder)
    assert made(command, folder, "-o", folder / "first", "--seed", 7, "--force") == ""
    assert "train:net" in run(folder)
    record = json.loads((folder / "runs" / "toy" / "models" / "net" / "training.json").read_text("utf-8"))
    assert "weights_digest" in record


def test_settings_that_do_not_go_with_weights_are_refused(tmp_path: Path) -> None:
    folder = prepare(tmp_path, CONFIG, GRAMMAR)
    counted = ["models=[{name: n, model: {architecture: ngram}, weights: first}]"]
    with pytest.raises(InputError, match="weights: ngram is an n-gram model"):
        load_config(folder / "toy.yaml", counted)
    with pytest.raises(InputError, match="load uses a model unchanged, without weights"):
        load_config(folder / "toy.yaml", ["models=[{name: n, load: x, weights: first}]"])
