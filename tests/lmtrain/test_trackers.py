"""Trackers and callbacks see the metrics of a training, and change nothing of the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import TrainerCallback
from transformers.integrations import integration_utils

from truesource.grammar.support.errors import InputError
from truesource.lmtrain import training_run as trackers
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.training import train

SENTENCES = [["a", "b"] * n + ["."] for n in range(1, 5)] * 8
MODEL = model_settings(layers=1, heads=2, dim=16, max_positions=12)
SETTINGS: dict[str, Any] = {"max_steps": 6, "batch_tokens": 32, "eval_every": 3, "checkpoint_every": 3}


class Recorded(TrainerCallback):  # type: ignore[misc]
    """Keeps what it is shown."""

    shown: list[tuple[int, dict[str, float]]] = []
    steps = 0

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float], **_: Any) -> None:
        self.shown.append((state.global_step, dict(logs)))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.steps += 1


class Stopping(TrainerCallback):  # type: ignore[misc]
    """Asks to stop after two steps."""

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop = state.global_step == 2


@pytest.fixture(autouse=True)
def nothing_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recorded, "shown", [])


@pytest.fixture
def tracker(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "fake", Recorded)
    monkeypatch.setattr(trackers, "get_available_reporting_integrations", lambda: ["fake"])
    return "fake"


class Splits:
    """A corpus as training sees it."""

    splits = ("train", "dev")

    def sentences(self, split: str) -> list[list[str]]:
        return SENTENCES if split == "train" else SENTENCES[:4]


def trained(out: Path, more: dict[str, Any] | None = None, **given: Any) -> dict[str, bytes]:
    """The files of a model but for its times."""
    train(Splits(), MODEL, TrainConfig(**{**SETTINGS, **(more or {})}), out, seed=1, **given)
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file() and path.name != "times.jsonl"}


def monitor(model: object) -> dict[str, float]:
    return {"relative_ppl": 1.5}


@pytest.mark.long
def test_a_tracker_and_a_callback_see_the_metrics_and_change_nothing(tmp_path: Path, tracker: str) -> None:
    plain = trained(tmp_path / "plain", monitor=monitor)
    with_tracker = trained(tmp_path / "tracked", {"report_to": [tracker]}, monitor=monitor)
    shown = list(Recorded.shown)
    Recorded.shown.clear()
    callback = Recorded()
    with_callback = trained(tmp_path / "called", monitor=monitor, callbacks=[callback])
    assert "model.safetensors" in plain and "training.json" in plain
    assert plain == with_tracker == with_callback
    assert callback.steps == 6
    rows = [json.loads(line) for line in (tmp_path / "plain" / "metrics.jsonl").read_text("utf-8").splitlines()]
    for seen in (shown, Recorded.shown):
        for row in rows:
            logs: dict[str, float] = {}
            for step, each in seen:
                logs |= each if step == row["step"] else {}
            assert logs["relative_ppl"] == 1.5 and logs["dev_loss"] == row["dev_loss"]
            assert logs["tokens"] == row["tokens"]
        assert {step for step, logs in seen if "loss" in logs} == {3, 6}


def test_a_callback_may_stop_the_training(tmp_path: Path) -> None:
    trained(tmp_path / "out", callbacks=[Stopping()])
    record = json.loads((tmp_path / "out" / "training.json").read_text("utf-8"))
    assert record["steps"] == 2 and record["stopped_early"] is True


def test_trackers_are_no_part_of_records() -> None:
    assert TrainConfig(**SETTINGS, report_to=["wandb"]).model_dump() == TrainConfig(**SETTINGS).model_dump()


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("tensorbord", "no-tracker", "did you mean tensorboard?"),
        ("wandb", "missing-library", "the tracker wandb is not installed"),
    ],
)
def test_a_tracker_that_cannot_be_used_is_refused_before_training(
    name: str, code: str, message: str, tmp_path: Path, tracker: str
) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")) as error:
        trained(tmp_path / "out", {"report_to": [name]})
    assert error.value.code == code
    assert not any(path.name.endswith(".partial") for path in tmp_path.iterdir())


def test_a_model_that_counts_takes_no_callbacks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="takes neither callbacks"):
        train(SENTENCES, model_settings(architecture="ngram"), None, tmp_path / "out", seed=1, callbacks=[Recorded()])


def test_events_of_tensorboard_are_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.delenv(trackers.FOLDER, raising=False)
    trained(tmp_path / "out", {"report_to": ["tensorboard"]}, monitor=monitor)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["out", "out.tensorboard"]
    events = EventAccumulator(str(tmp_path / "out.tensorboard"))
    events.Reload()
    assert [each.step for each in events.Scalars("train/relative_ppl")] == [0, 3, 6]
    assert [each.step for each in events.Scalars("train/loss")] == [3, 6]


def test_the_folder_of_events_is_named_for_the_block_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.delenv(trackers.FOLDER, raising=False)
    with trackers.events_beside(tmp_path / "net", ["tensorboard"]):
        assert os.environ[trackers.FOLDER] == str(tmp_path / "net.tensorboard")
    assert trackers.FOLDER not in os.environ
    monkeypatch.setenv(trackers.FOLDER, "mine")
    with trackers.events_beside(tmp_path / "net", ["tensorboard"]):
        assert os.environ[trackers.FOLDER] == "mine"
    assert os.environ[trackers.FOLDER] == "mine"
