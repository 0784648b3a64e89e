"""Architectures of one's own in configurations: runs, sweeps, `truesource train`; code is tried before any stage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Command
from own_code import EXAMPLES
from tiny_run import prepare, run

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.models import load_model
from truesource.run.experiment import load_config
from truesource.run.folder import RunFolder
from truesource.run.models.stage import inputs
from truesource.studies.scaling.config import load_sweep

GRAMMAR = """\
S -> NP VP 1.0
NP -> DT NN 0.7 | NN 0.3
VP -> VB NP 0.6 | VB 0.4
DT -> the 0.6 | a 0.4
NN -> dog 0.4 | cat 0.3 | walk 0.3
VB -> sees 0.6 | walk 0.4
"""
CONFIG = """\
name: toy
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..8, splits: {train: 60, dev: 10, eval: 20}}
models:
  - name: mine
    model: {architecture: "code/mine.py:GRU", hidden: 8}
    training: {max_steps: 3, snapshots: log, warmup_steps: 1}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    prepare(tmp_path, CONFIG, GRAMMAR)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "mine.py").write_text(EXAMPLES.read_text())
    return tmp_path


def test_the_page_shows_the_file_of_the_examples() -> None:
    assert EXAMPLES.read_text() in (EXAMPLES.parents[1] / "howto" / "own_models.md").read_text()


def test_the_first_example_of_the_page_is_tried(tmp_path: Path) -> None:
    from truesource.lmtrain.model_registry import completed, model_settings
    from truesource.lmtrain.own.architecture import try_out

    page = (EXAMPLES.parents[1] / "howto" / "own_models.md").read_text()
    (tmp_path / "gru.py").write_text(page.split("```python\n")[1].split("```")[0])
    try_out(completed(model_settings(f"{tmp_path / 'gru.py'}:GRU", hidden=8)))  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.usefixtures("quick_report")
def test_a_run_trains_it(here: Path) -> None:
    made = run(here)
    assert {"train:mine", "score:mine"} <= {*made}
    record = json.loads((here / "runs" / "toy" / "models" / "mine" / "training.json").read_text())
    assert record["model"]["architecture"] == "code/mine.py:GRU"
    assert record["model"]["layers"] == 1
    assert "train:mine" not in run(here)


def test_an_edited_file_is_trained_again(here: Path) -> None:
    other = here / "other" / "code" / "mine.py"
    other.parent.mkdir(parents=True)
    other.write_text(EXAMPLES.read_text() + "# edited\n")
    config = load_config(here / "toy.yaml")
    one, two = (
        inputs(RunFolder(config, here / "runs" / "toy", base, {"corpus": "c"}), config.models[0])
        for base in (here, here / "other")
    )
    differ = {key for key in one["model"] if one["model"][key] != two["model"][key]}
    assert differ == {"code_digest"}
    assert {key for key in one if one[key] != two[key]} == {"model"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"hidden": 8, "layrs": 2}, "unknown-setting"),
        ({"architecture": "code/mine.py:GR"}, "no-name"),
        ({"architecture": "code/none.py:GRU"}, "missing"),
        ({"max_positions": 8}, "input"),
    ],
)
def test_nothing_is_made_where_code_cannot_be_used(here: Path, change: dict[str, Any], code: str) -> None:
    model = {"architecture": "code/mine.py:GRU", **change}
    entry = {"name": "mine", "model": model, "training": {"max_steps": 3}}
    with pytest.raises(InputError) as caught:
        run(here, f"models=[{json.dumps(entry)}]")
    assert caught.value.code == code
    assert not (here / "runs").exists()


def test_reading_a_configuration_runs_nothing(here: Path) -> None:
    (here / "code" / "mine.py").write_text(f"open({str(here / 'mark')!r}, 'w').close()\nraise RuntimeError\n")
    load_config(here / "toy.yaml")
    assert not (here / "mark").exists()


@pytest.mark.long
def test_a_sweep_varies_its_settings(here: Path, command: Command) -> None:
    PCFG.from_text(GRAMMAR).save(here / "toy.npz")
    config = {
        "name": "sweep",
        "grammar": "toy.npz",
        "corpus": {"lengths": "2..8", "splits": {"train": 40, "dev": 10, "eval": 20}, "trees": "none"},
        "base": {"model": {"architecture": "code/mine.py:GRU"}, "training": {"max_steps": 2, "warmup_steps": 1}},
        "axes": {"sentences": [40], "model": [{"hidden": 4}, {"hidden": 8}]},
        "evaluation": {"replicates": 100},
    }
    (here / "sweep.yaml").write_text(yaml.safe_dump(config))
    assert [name for name, _, _ in load_sweep(here / "sweep.yaml").shapes()] == ["GRU-hidden4", "GRU-hidden8"]
    done = command("run", str(here / "sweep.yaml"), "--runs", str(here / "runs"))
    assert done.code == 0, done.err
    cells = sorted((here / "runs" / "sweep" / "scores").glob("*.json"))
    assert [json.loads(cell.read_text())["model"] for cell in cells] == ["GRU-hidden4", "GRU-hidden8"]


def test_train_names_the_code_and_what_comes_next(
    here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    (here / "text.txt").write_text("a b .\nc d .\n" * 20)
    call = ("train", "text.txt", "-o", "m", "--model", "code/mine.py:GRU", "--set", "training.max_steps=2")
    done = command(*call, "--set", "model.hidden=4")
    assert done.code == 0, done.err
    assert "code/mine.py:GRU@m" in done.out
    assert load_model("code/mine.py:GRU@m", device="cpu").name == "m"
    refused = command(*call[:3], "n", *call[4:], "--set", "model.hiden=4")
    assert refused.code == 2
    assert "hidden, layers, dropout" in refused.err
    assert not (here / "n").exists()
