"""Snapshots: which steps, what they hold, and that an interrupted run leaves the same ones."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.models import load_model
from truesource.lmtrain.snapshots import checkpoints, drop_later, schedule, snapshots
from truesource.lmtrain.trained_models import TrainedModel
from truesource.lmtrain.trainer import LossTrainer
from truesource.lmtrain.training import train

MODEL = model_settings(
    layers=1, heads=2, dim=16, ffn_dim=32, max_positions=12
)  # with dropout, which draws random numbers
TRAINING = TrainConfig(
    max_steps=11, batch_tokens=64, eval_every=4, checkpoint_every=4, learning_rate=1e-2, warmup_steps=2, snapshots="log"
)
STEPS = [0, 1, 2, 4, 8, 11]


class Source:
    """A corpus of a's and b's in turn, with one of two ends."""

    splits = ("train", "dev")

    def sentences(self, split: str) -> list[list[str]]:
        rng = np.random.default_rng(["train", "dev"].index(split))
        return [["a", "b"] * int(n) + [str(rng.choice([".", "!"]))] for n in rng.integers(1, 5, size=60)]


def config(**settings: Any) -> TrainConfig:
    return TrainConfig(max_steps=1, **settings)


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def digests(folder: Path) -> dict[str, str]:
    files = [path for path in (folder / "snapshots").rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in files}


def loss(model: TrainedModel) -> dict[str, float]:
    """The rudest monitor: it draws from all random states, and leaves the model in training mode."""
    torch.rand(3)
    np.random.rand(3)  # noqa: NPY002
    assert not model.model.training
    found = {"loss_of_monitor": -float(model.score(Source().sentences("dev"), ScoringFrame()).log_prob.mean())}
    torch.manual_seed(5)
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "model"
    train(Source(), MODEL, TRAINING, out, seed=3, monitor=loss)
    return out


@pytest.mark.parametrize(
    ("settings", "n_steps", "steps"),
    [
        ({}, 100, []),
        ({"snapshots": "linear", "snapshot_every": 40}, 100, [0, 40, 80, 100]),
        ({"snapshots": "linear", "snapshot_every": 50}, 100, [0, 50, 100]),
        ({"snapshots": "linear", "snapshot_every": 500}, 100, [0, 100]),
        ({"snapshots": "log"}, 20, [0, 1, 2, 4, 8, 16, 20]),
        ({"snapshots": "log"}, 16, [0, 1, 2, 4, 8, 16]),
        ({"snapshots": "log", "snapshots_per_doubling": 2}, 17, [0, 1, 2, 3, 4, 6, 8, 11, 16, 17]),
    ],
)
def test_steps_of_a_schedule(settings: dict[str, Any], n_steps: int, steps: list[int]) -> None:
    assert sorted(schedule(config(**settings), n_steps)) == steps


@given(st.integers(1, 10**7), st.integers(1, 12))
def test_a_log_schedule_is_spread_evenly_over_doublings(n_steps: int, m: int) -> None:
    steps = sorted(schedule(config(snapshots="log", snapshots_per_doubling=m), n_steps))
    assert steps[0] == 0
    assert steps[-1] == n_steps
    assert len(steps) <= m * (n_steps.bit_length() + 1) + 2
    assert all(b <= a * 2 ** (1 / m) + 1.5 for a, b in itertools.pairwise(steps[1:]))


@pytest.mark.long
def test_each_snapshot_is_a_model(finished: Path) -> None:
    found = snapshots(finished)
    assert [step for step, _ in found] == STEPS
    rows = {row["step"]: row for row in metrics(finished)}
    assert sorted(rows) == STEPS  # 4 and 8 are steps of metrics, too
    for step, path in found:
        assert path.name == f"step-{step:06d}"
        model = load_model(path)
        assert model.name == f"gpt2-1x16@{step}"
        record = json.loads((path / "training.json").read_text())
        assert (record["step"], record["epoch"], record["tokens"]) == tuple(
            rows[step][key] for key in ("step", "epoch", "tokens")
        )
        scores = model.score(Source().sentences("dev"), ScoringFrame())
        assert rows[step]["dev_loss"] == pytest.approx(-scores.log_prob.mean(), abs=1e-5)
        assert rows[step]["loss_of_monitor"] == pytest.approx(rows[step]["dev_loss"], abs=1e-5)
    last = load_file(found[-1][1] / "model.safetensors")
    assert all(torch.equal(value, last[key]) for key, value in load_file(finished / "model.safetensors").items())


@pytest.mark.long
@pytest.mark.parametrize("killed_at", [0, 9])
def test_a_run_that_was_killed_leaves_the_same_snapshots(
    finished: Path, killed_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LossTrainer.compute_loss

    def dies(self: LossTrainer, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self.state.global_step == killed_at:
            raise SystemExit("killed")
        return whole(self, *args, **kwargs)

    out = tmp_path / "model"
    monkeypatch.setattr(LossTrainer, "compute_loss", dies)
    with pytest.raises(SystemExit):
        train(Source(), MODEL, TRAINING, out, seed=3, monitor=loss)
    kept = tmp_path / "model.partial" / "snapshots"
    (kept / ".step-000008.1-ab.partial").mkdir()  # killed while writing
    (kept / "step-000010").mkdir()  # of a step after the last checkpoint
    monkeypatch.setattr(LossTrainer, "compute_loss", whole)
    train(Source(), MODEL, TRAINING, out, seed=3, monitor=loss)
    assert digests(out) == digests(finished)
    assert metrics(out) == metrics(finished)


@pytest.mark.long
def test_neither_snapshots_nor_a_probe_change_the_weights(finished: Path, tmp_path: Path) -> None:
    plain = TRAINING.model_copy(update={"snapshots": "none"})
    train(Source(), MODEL, plain, tmp_path / "model", seed=3)
    assert digest_file(tmp_path / "model" / "model.safetensors") == digest_file(finished / "model.safetensors")
    assert not (tmp_path / "model" / "snapshots").exists()
    assert snapshots(tmp_path / "model") == []


def test_a_run_stopped_by_the_clock_keeps_its_last_step(tmp_path: Path) -> None:
    stopped = TRAINING.model_copy(update={"max_seconds": 1e-6, "snapshots": "linear", "snapshot_every": 5})
    train(Source(), MODEL, stopped, tmp_path / "model", seed=3)
    assert [step for step, _ in snapshots(tmp_path / "model")] == [0, 1]


def test_a_probe_that_finds_nothing_finite_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the oracle monitor measured kl as inf at step 0"):
        train(Source(), MODEL, TRAINING, tmp_path / "model", seed=3, monitor=lambda model: {"kl": float("inf")})


def test_damaged_snapshots_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model folder"):
        snapshots(tmp_path / "none")
    broken = tmp_path / "snapshots" / "step-000003"
    broken.mkdir(parents=True)
    assert snapshots(tmp_path) == [(3, broken)]  # laid out by hand
    (broken / "training.json").write_text('{"step": 3}')
    assert snapshots(tmp_path) == [(3, broken)]
    for content, message in [
        ('{"step": 4}', "of step 4 by its training.json; rename its folder"),
        ('{"step": "abc"}', "damaged: step"),
        ('{"step": 1e999}', "a number that is too large"),
        ('{"step": 3', "the record of the training is not JSON"),
        ("[3]", "the record of the training is damaged"),
        ("[" * 100_000, "recursion limit"),
    ]:
        (broken / "training.json").write_text(content)
        with pytest.raises(InputError, match=message):
            snapshots(tmp_path)


@pytest.mark.long
def test_checkpoints_laid_out_by_hand(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"snapshots/step-000010, .*, each with config.json, weights and tokenizer.json"
    ):
        checkpoints(tmp_path)
    for step in (20, 10):
        shutil.copytree(finished, tmp_path / "snapshots" / f"step-{step:06d}", ignore=shutil.ignore_patterns("*.json*"))
        for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
            shutil.copy(finished / name, tmp_path / "snapshots" / f"step-{step:06d}" / name)
    found = checkpoints(tmp_path)
    assert [step for step, _ in found] == [10, 20]
    assert {load_model(path).name for _, path in found} == {"step-000010", "step-000020"}
    (found[0][1] / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"the snapshot of step 10 is unfinished, it lacks tokenizer.json"):
        checkpoints(tmp_path)


def test_leftover_folders_of_later_steps_are_dropped(tmp_path: Path) -> None:
    broken = tmp_path / "snapshots" / "step-000003"
    broken.mkdir(parents=True)
    drop_later(tmp_path, 3)
    assert broken.is_dir()
    stray = broken.parent / "notes.txt"
    stray.write_text("a file, not a snapshot", encoding="utf-8")
    drop_later(tmp_path, 2)
    assert not broken.exists()
    assert stray.is_file()
