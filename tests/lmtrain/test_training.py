"""Training: what it leaves, what it refuses, and that an interrupted run ends where an uninterrupted one does."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from half_certain import Source, language
from safetensors.torch import load_file

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.models import load_model
from truesource.lmtrain.trainer import LossTrainer, Watch
from truesource.lmtrain.training import train

TINY = {"layers": 1, "heads": 2, "dim": 16, "ffn_dim": 32, "max_positions": 12}
CAUSAL = model_settings(architecture="gpt2", **TINY)
MASKED = model_settings(architecture="bert", **TINY)
SHORT = TrainConfig(max_steps=24, batch_tokens=64, eval_every=4, checkpoint_every=8, learning_rate=1e-2, warmup_steps=2)


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An uninterrupted run of each objective."""
    root = tmp_path_factory.mktemp("finished")
    for config in (CAUSAL, MASKED):
        train(Source(), config, SHORT, root / config.architecture, seed=3)
    return {config.architecture: root / config.architecture for config in (CAUSAL, MASKED)}


@pytest.mark.long
@pytest.mark.parametrize("architecture", ["gpt2", "bert"])
def test_a_finished_folder_is_complete(finished: dict[str, Path], architecture: str) -> None:
    folder = finished[architecture]
    assert not folder.with_name(f"{architecture}.partial").exists()
    record = json.loads((folder / "training.json").read_text())
    assert (record["seed"], record["steps"], record["stopped_early"]) == (3, 24, False)
    assert record["training"] == SHORT.model_dump(mode="json")
    assert set(record["versions"]) >= {"python", "torch", "transformers"}
    card = (folder / "README.md").read_text()
    assert yaml.safe_load(card.split("---\n")[1]) == {
        "library_name": "transformers",
        "license": "unknown",
        "pipeline_tag": "text-generation" if architecture == "gpt2" else "fill-mask",
        "tags": ["truesource", "synthetic"],
    }
    assert "a step is a batch of about 64 tokens, fp32." in card
    rows = metrics(folder)
    assert [row["step"] for row in rows] == [0, 4, 8, 12, 16, 20, 24]
    assert rows[-1]["dev_loss"] < rows[0]["dev_loss"] - 0.3
    assert all(row["dev_ppl"] == pytest.approx(np.exp(row["dev_loss"])) for row in rows)
    assert all(a["tokens"] < b["tokens"] for a, b in itertools.pairwise(rows))
    assert rows[0]["loss"] is None
    assert rows[1]["loss"] > rows[-1]["loss"] > 0
    assert rows[2]["lr"] > rows[-1]["lr"]


@pytest.mark.long
def test_the_dev_loss_of_a_causal_model_is_its_score(finished: dict[str, Path]) -> None:
    scores = load_model(finished["gpt2"]).score(Source().sentences("dev"), ScoringFrame())
    assert metrics(finished["gpt2"])[-1]["dev_loss"] == pytest.approx(-scores.log_prob.mean(), abs=1e-5)


@pytest.mark.long
def test_the_dev_loss_of_a_masked_model_is_its_score(finished: dict[str, Path]) -> None:
    """40 dev sentences have fewer words than eval_sentences, so each is masked once."""
    scores = load_model(finished["bert"]).score(Source().sentences("dev"), ScoringFrame())
    assert metrics(finished["bert"])[-1]["dev_loss"] == pytest.approx(-scores.log_prob.mean(), abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("config", [CAUSAL, MASKED])
def test_a_run_that_was_killed_ends_with_the_same_weights(
    finished: dict[str, Path], config: ModelConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LossTrainer.compute_loss

    def dies(self: LossTrainer, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self.state.global_step == 18:
            raise SystemExit("killed")
        return whole(self, *args, **kwargs)

    out = tmp_path / "model"
    monkeypatch.setattr(LossTrainer, "compute_loss", dies)
    with pytest.raises(SystemExit):
        train(Source(), config, SHORT, out, seed=3)
    assert not out.exists()
    partial = tmp_path / "model.partial"
    assert sorted(path.name for path in (partial / "checkpoints").iterdir()) == ["checkpoint-16", "checkpoint-8"]
    (partial / "checkpoints" / "checkpoint-16" / "trainer_state.json").write_text("{")  # killed while writing
    monkeypatch.setattr(LossTrainer, "compute_loss", whole)
    with pytest.raises(InputError, match="other settings"):
        train(Source(), config, SHORT.model_copy(update={"clip": 2.0}), out, seed=3)
    torch.manual_seed(99)
    train(Source(), config, SHORT, out, seed=3)
    one, two = (load_file(folder / "model.safetensors") for folder in (finished[config.architecture], out))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert metrics(out) == metrics(finished[config.architecture])


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_saves_a_checkpoint_and_the_run_goes_on_from_it(
    number: signal.Signals, finished: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = LossTrainer.compute_loss

    def interrupts(self: LossTrainer, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self.state.global_step == 10:
            os.kill(os.getpid(), number)
        return whole(self, *args, **kwargs)

    before = signal.getsignal(number)
    out = tmp_path / "model"
    monkeypatch.setattr(LossTrainer, "compute_loss", interrupts)
    with pytest.raises(KeyboardInterrupt):
        train(Source(), CAUSAL, SHORT, out, seed=3)
    assert signal.getsignal(number) is before
    assert (tmp_path / "model.partial" / "checkpoints" / "checkpoint-11" / "trainer_state.json").is_file()
    assert not out.exists()
    monkeypatch.setattr(LossTrainer, "compute_loss", whole)
    train(Source(), CAUSAL, SHORT, out, seed=3)
    one, two = (load_file(folder / "model.safetensors") for folder in (finished["gpt2"], out))
    assert all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.long
def test_other_seeds_give_other_weights(finished: dict[str, Path], tmp_path: Path) -> None:
    train(Source(), CAUSAL, SHORT, tmp_path / "model", seed=4)
    one, two = (load_file(folder / "model.safetensors") for folder in (finished["gpt2"], tmp_path / "model"))
    assert not torch.equal(one["transformer.wte.weight"], two["transformer.wte.weight"])


def test_an_existing_folder_is_refused_then_replaced(tmp_path: Path) -> None:
    out = tmp_path / "model"
    out.mkdir()
    (out / "precious").write_text("x")
    short = TrainConfig(max_steps=1, batch_tokens=32)
    with pytest.raises(InputError, match="--force"):
        train(language(5, 0), CAUSAL, short, out, seed=0)
    with pytest.raises(InputError, match="not a model, so it will not be replaced"):
        train(language(5, 0), CAUSAL, short, out, seed=0, force=True)
    assert (out / "precious").exists()
    (out / "training.json").write_text("x")  # as the folder of a model has one
    model = train(language(5, 0), CAUSAL, short, out, seed=0, force=True)
    assert not (out / "precious").exists()
    assert model.name == "gpt2-1x16"
    assert metrics(out)[-1]["dev_loss"] is None  # plain sentences have no dev split


def test_a_loss_that_is_not_finite_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = LossTrainer.compute_loss

    def diverges(self: LossTrainer, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self.state.global_step == 2:
            with torch.no_grad():
                next(self.model.parameters()).fill_(torch.nan)
        return whole(self, *args, **kwargs)

    monkeypatch.setattr(LossTrainer, "compute_loss", diverges)
    with pytest.raises(InputError, match="loss is nan at step 3"):
        train(Source(), CAUSAL, SHORT, tmp_path / "model", seed=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e4])
def test_a_dev_loss_without_perplexity_stops_the_run(
    value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Watch, "_dev_loss", lambda watch: value if watch.rows else 3.0)
    with pytest.raises(
        InputError, match=rf"the dev loss is {re.escape(f'{value:.4g}')} at step 4; lower the learning rate"
    ):
        train(Source(), CAUSAL, SHORT, tmp_path / "model", seed=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_time_budget_stops_early_and_says_so(tmp_path: Path) -> None:
    train(Source(), CAUSAL, SHORT.model_copy(update={"max_seconds": 1e-6}), tmp_path / "model", seed=0)
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert (record["stopped_early"], record["steps"]) == (True, 1)


@pytest.mark.long
def test_accumulated_micro_batches_train(tmp_path: Path) -> None:
    config = TrainConfig(
        max_steps=6, batch_tokens=32, accumulation=3, eval_every=3, schedule="linear", precision="bf16"
    )
    train(Source(), MASKED, config, tmp_path / "model", seed=0)
    rows = metrics(tmp_path / "model")
    assert [row["step"] for row in rows] == [0, 3, 6]
    assert rows[-1]["tokens"] > 6 * 3 * 16


def test_a_gpu_without_bf16_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "an old GPU")
    with pytest.raises(InputError, match="an old GPU has no bf16 arithmetic"):
        train(Source(), CAUSAL, SHORT.model_copy(update={"precision": "bf16"}), tmp_path / "model", seed=0)
    assert list(tmp_path.iterdir()) == []


class NoTrain:
    splits = ("dev",)

    def sentences(self, split: str) -> list[list[str]]:
        raise AssertionError("not to be read")


@pytest.mark.parametrize(
    ("corpus", "model", "message"),
    [
        (NoTrain(), CAUSAL, "no train split; it has dev"),
        ([], CAUSAL, "no words"),
        ([["a"] * 12], CAUSAL, "sentence 1 of the train split has 12 words, the model takes 11"),
        ([["a"], ["a"] * 11], MASKED, "sentence 2 of the train split has 11 words, the model takes 10"),
    ],
)
def test_bad_input(corpus: Any, model: ModelConfig, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        train(corpus, model, SHORT, tmp_path / "model", seed=0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: model_settings(width=3), "width"),  # type: ignore[call-arg]
        (lambda: model_settings(dim=10, heads=4), "not a multiple"),
        (lambda: TrainConfig(), "either epochs or max_steps"),
        (lambda: TrainConfig(epochs=1, max_steps=1), "either epochs or max_steps"),
        (lambda: TrainConfig(epochs=1, mask_probability=0.0), "mask_probability"),
    ],
)
def test_bad_settings_name_the_field(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
