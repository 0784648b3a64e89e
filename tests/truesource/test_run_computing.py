"""Device and precision of networks as keys of a configuration, and what is made again when they change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command

from truesource.evaluation.core.token_table import read_token_record
from truesource.grammar.support.errors import InputError
from truesource.report.finished_run import ScoresRecord
from truesource.run.experiment import execute, load_config

CONFIG = """\
name: d
grammar: {language: dyck, k: 2}
corpus: {lengths: 2..10, splits: {train: 60, dev: 10, eval: 20}}
models:
  - {name: net, preset: tiny, model: {layers: 1, dim: 16, heads: 2}, training: {max_steps: 2, eval_every: 2}}
"""


def made(folder: Path, *overrides: str) -> set[str]:
    """The stages that a call made."""
    (folder / "d.yaml").write_text(CONFIG, encoding="utf-8")
    execute(load_config(folder / "d.yaml", list(overrides)), base=folder, runs=folder / "runs")
    stages = json.loads((folder / "runs" / "d" / "stages.json").read_text("utf-8"))["stages"]
    return {name for name, stage in stages.items() if not stage["skipped"]}


@pytest.mark.long
def test_precision_is_measured_anew_and_device_and_trackers_are_not(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "d"
    assert "train:net" in made(tmp_path)
    assert json.loads((run / "models" / "net" / "training.json").read_text("utf-8"))["device"]
    assert made(tmp_path, "device=cpu") == set()
    assert made(tmp_path, "models.0.training.report_to=[tensorboard]") <= {"report"}
    signature = read_token_record(run / "scores" / "net.parquet", ScoresRecord)["record"]["signature"]
    assert "networks:" not in signature
    assert made(tmp_path, "dtype=bfloat16") == {"score:oracle", "score:net", "report"}
    signature = read_token_record(run / "scores" / "net.parquet", ScoresRecord)["record"]["signature"]
    assert "networks:bfloat16" in signature


def test_a_device_that_is_not_there_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        made(tmp_path, "device=cuda:99")
    assert error.value.code == "no-device"
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("override", ["device=gpu", "dtype=int8"])
def test_names_are_checked(override: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=override.partition("=")[0]):
        made(tmp_path, override)


@pytest.mark.long
def test_options_and_the_environment_give_the_keys_and_set_wins(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "d.yaml").write_text(CONFIG, encoding="utf-8")
    call = ("run", str(tmp_path / "d.yaml"), "--runs", str(tmp_path / "runs"))
    refused = command(*call, "--device", "cuda:99")
    assert refused.code == 2 and "cuda:99" in refused.err
    monkeypatch.setenv("TRUESOURCE_DEVICE", "cuda:98")
    refused = command(*call)
    assert refused.code == 2 and "cuda:98" in refused.err
    found = command(*call, "--set", "device=cpu", "--dtype", "bfloat16")
    assert found.code == 0, found.err
    run = tmp_path / "runs" / "d"
    assert "networks:bfloat16" in read_token_record(run / "scores" / "net.parquet", ScoresRecord)["record"]["signature"]
    config = json.loads((run / "config.json").read_text("utf-8"))
    assert config["dtype"] == "bfloat16"
