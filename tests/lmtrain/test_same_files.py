"""A training leaves the same files, byte for byte, however often it was stopped; what took how long stands apart."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stopping import contents
from transformers import TrainerCallback

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.decoding.sample_builder import model_digest
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.trainer import LossTrainer, Watch
from truesource.lmtrain.training import train
from truesource.lmtrain.training_record import TIMES, read_times, training_seconds

pytestmark = pytest.mark.long

SHAPE = {"layers": 1, "heads": 2, "dim": 16, "ffn_dim": 32, "max_positions": 12}  # with dropout
MODELS = {name: model_settings(architecture=name, **SHAPE) for name in ("gpt2", "bert", "diffusion")}
TRAINING = TrainConfig(
    max_steps=14, batch_tokens=32, accumulation=2, eval_every=4, checkpoint_every=4, warmup_steps=2, snapshots="log"
)
NGRAM = model_settings(architecture="ngram")
whole = LossTrainer.compute_loss


class Source:
    """A corpus as training sees it."""

    splits = ("train", "dev")

    def sentences(self, split: str) -> list[list[str]]:
        rng = np.random.default_rng(["train", "dev"].index(split))
        return [["a", "b"] * int(n) + [str(rng.choice([".", "!"]))] for n in rng.integers(1, 5, size=60)]


def trained(out: Path, architecture: str = "gpt2", *, force: bool = False) -> Path:
    train(Source(), MODELS[architecture], TRAINING, out, seed=3, force=force)
    return out


def stopping(step: int, stop: Callable[[], None]) -> Any:
    """The loss of a micro-batch, with something happening before each of a step."""

    def stops(self: LossTrainer, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self.state.global_step == step:
            stop()
        return whole(self, *args, **kwargs)

    return stops


def killed() -> None:
    raise SystemExit("killed")


def same(folder: Path) -> dict[str, bytes]:
    """All files but the times."""
    return {name: text for name, text in contents(folder).items() if name != TIMES}


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An uninterrupted training of each objective."""
    root = tmp_path_factory.mktemp("finished")
    return {name: trained(root / name, name) for name in MODELS}


@pytest.mark.parametrize("over_old", [False, True], ids=["new", "over an old folder"])
@pytest.mark.parametrize(
    ("architecture", "number", "steps"),
    [
        ("gpt2", signal.SIGINT, (9,)),
        ("gpt2", signal.SIGINT, (4, 6, 10)),
        ("bert", signal.SIGTERM, (6,)),
        ("diffusion", signal.SIGTERM, (6,)),
    ],
)
def test_an_interrupted_training_leaves_the_same_files(
    architecture: str, number: signal.Signals, steps: tuple[int, ...], over_old: bool,
    finished: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    out = tmp_path / "model"
    if over_old:
        train(Source(), MODELS["gpt2"], TrainConfig(max_steps=1, batch_tokens=32), out, seed=1)
    old = contents(out) if over_old else {}
    for step in steps:
        sent = False

        def send() -> None:
            nonlocal sent
            if not sent:
                sent = True
                os.kill(os.getpid(), number)

        monkeypatch.setattr(LossTrainer, "compute_loss", stopping(step, send))
        with pytest.raises(KeyboardInterrupt):
            trained(out, architecture, force=over_old)
        assert (tmp_path / "model.partial" / "checkpoints" / f"checkpoint-{step + 1}").is_dir()
        assert (contents(out) if over_old else {}) == old
    monkeypatch.setattr(LossTrainer, "compute_loss", whole)
    trained(out, architecture, force=over_old)
    assert same(out) == same(finished[architecture])
    assert [row["step"] for row in read_times(out)] == [row["step"] for row in metrics(out)]


@pytest.mark.parametrize("step", [0, 3, 7])
def test_a_killed_training_leaves_the_same_files(
    step: int, finished: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LossTrainer, "compute_loss", stopping(step, killed))
    with pytest.raises(SystemExit):
        trained(tmp_path / "model")
    monkeypatch.setattr(LossTrainer, "compute_loss", whole)
    assert same(trained(tmp_path / "model")) == same(finished["gpt2"])


@pytest.mark.parametrize("accumulation", [1, 3])
def test_the_loss_of_a_line_is_the_mean_over_its_steps(
    accumulation: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the Trainer, which is kept in single precision, is the same where nothing was stopped."""
    theirs, write = [], Watch.on_log

    def keeps(self: Watch, *args: Any, logs: dict[str, float], **kwargs: Any) -> None:
        theirs.extend([logs["loss"]] if "loss" in logs else [])
        write(self, *args, logs=logs, **kwargs)

    assert issubclass(Watch, TrainerCallback)
    monkeypatch.setattr(Watch, "on_log", keeps)
    config = TRAINING.model_copy(update={"accumulation": accumulation})
    train(Source(), MODELS["gpt2"], config, tmp_path / "model", seed=3)
    rows = metrics(tmp_path / "model")[1:]
    assert [row["step"] for row in rows] == [1, 2, 4, 8, 12, 14]
    assert [row["loss"] for row in rows] == pytest.approx(theirs, rel=1e-6)


def test_the_times_stand_in_a_file_of_their_own(finished: dict[str, Path], tmp_path: Path) -> None:
    folder = finished["gpt2"]
    rows = read_times(folder)
    assert [row["step"] for row in rows] == [row["step"] for row in metrics(folder)]
    assert all(0.0 <= a["seconds"] <= b["seconds"] for a, b in itertools.pairwise(rows))
    assert training_seconds(folder) == rows[-1]["seconds"] > 0.0
    assert [name for name, text in same(folder).items() if b"seconds" in text] == ["training.json"]
    record = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    assert record["training"]["max_seconds"] is None and "seconds" not in record["final"]
    assert TIMES not in record["files"]
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / TIMES).unlink()
    assert training_seconds(copy) is None
    assert model_digest(copy) == model_digest(folder)
    (copy / TIMES).write_text('{"step": 0, "seconds": -1.0}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"seconds: .*; train the model again \(.*times\.jsonl:1\)"):
        training_seconds(copy)


def test_counted_models_leave_the_same_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        train(Source(), NGRAM, None, tmp_path / name, seed=3)
    assert same(tmp_path / "one") == same(tmp_path / "two")
    ((_, seconds),) = [row.values() for row in read_times(tmp_path / "one")]
    assert training_seconds(tmp_path / "one") == seconds
    assert TIMES not in json.loads((tmp_path / "one" / "training.json").read_text(encoding="utf-8"))["files"]
