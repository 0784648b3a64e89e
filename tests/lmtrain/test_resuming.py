"""Checkpoints that are not whole: a run does not go on from them, for it would end with other weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.saving import step_of
from truesource.lmtrain.trainer import LossTrainer
from truesource.lmtrain.training import train

MODEL = model_settings(layers=1, heads=2, dim=16, ffn_dim=32, max_positions=12)
TRAINING = TrainConfig(max_steps=8, batch_tokens=64, eval_every=4, checkpoint_every=4)
SENTENCES = [["a", "b", "c"], ["b"], ["c", "a"]] * 20


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed at step 5, with a checkpoint at step 4."""
    folder = tmp_path_factory.mktemp("runs")
    whole = LossTrainer.compute_loss

    def dies(self: LossTrainer, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self.state.global_step == 5:
            raise SystemExit("killed")
        return whole(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(LossTrainer, "compute_loss", dies)
        train(SENTENCES, MODEL, TRAINING, folder / "model", seed=1)
    return folder


def without(tensor: str) -> Callable[[Path], None]:
    def change(checkpoint: Path) -> None:
        tensors = load_file(checkpoint / "model.safetensors")
        del tensors[tensor]
        save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})

    return change


def added(checkpoint: Path) -> None:
    tensors = {**load_file(checkpoint / "model.safetensors"), "transformer.extra": torch.zeros(1)}
    save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})


def reshaped(checkpoint: Path) -> None:
    tensors = load_file(checkpoint / "model.safetensors")
    tensors["transformer.wpe.weight"] = tensors["transformer.wpe.weight"][:-1].contiguous()
    save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})


def other_optimiser(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def apply(checkpoint: Path) -> None:
        state = torch.load(checkpoint / "optimizer.pt", weights_only=True)
        change(state)
        torch.save(state, checkpoint / "optimizer.pt")

    return apply


def narrow(state: dict[str, Any]) -> None:
    state["state"][0]["exp_avg"] = state["state"][0]["exp_avg"][:-1]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without("transformer.wte.weight"), "the weights lack the tensors lm_head.weight, transformer.wte.weight"),
        (without("transformer.ln_f.bias"), "the weights lack the tensor transformer.ln_f.bias"),
        (added, "the weights hold the tensor transformer.extra"),
        (reshaped, "size mismatch for transformer.wpe.weight"),
        (lambda c: (c / "model.safetensors").write_bytes(b"x"), "model.safetensors of the checkpoint is damaged"),
        (lambda c: (c / "optimizer.pt").write_bytes(b"rubbish"), "optimizer.pt or scheduler.pt of the checkpoint is d"),
        (lambda c: (c / "optimizer.pt").unlink(), "the checkpoint lacks optimizer.pt; delete this checkpoint"),
        (lambda c: (c / "scheduler.pt").write_bytes(b""), "optimizer.pt or scheduler.pt of the checkpoint is damaged"),
        (other_optimiser(narrow), "exp_avg has the shape"),
        (other_optimiser(lambda state: state.update(state={})), "it holds no state of the optimiser"),
        (lambda c: (c / "rng_state.pth").write_bytes(b"\x80\x04."), "rng_state.pth of the checkpoint is damaged"),
        (lambda c: (c / "rng_state.pth").unlink(), "the checkpoint lacks rng_state.pth"),
        (
            lambda c: (c / "losses_0.json").write_text('{"total": "1"}'),
            "the sum of losses of the checkpoint is dam",
        ),
        (lambda c: torch.save({"python": 3}, c / "rng_state.pth"), "rng_state.pth of the checkpoint is damaged"),
        (
            lambda c: (c / "trainer_state.json").write_text('{"global_step": 4, "log_history": 3, "rubbish": 1}'),
            "trainer_state.json of the checkpoint is damaged",
        ),
    ],
)
def test_a_run_does_not_go_on_from_a_damaged_checkpoint(
    spoil: Callable[[Path], object], message: str, unfinished: Path, tmp_path: Path
) -> None:
    shutil.copytree(unfinished, tmp_path / "runs")
    checkpoint = tmp_path / "runs" / "model.partial" / "checkpoints" / "checkpoint-4"
    spoil(checkpoint)
    with pytest.raises(InputError, match=message) as refusal:
        train(SENTENCES, MODEL, TRAINING, tmp_path / "runs" / "model", seed=1)
    assert str(checkpoint) in str(refusal.value)
    assert not (tmp_path / "runs" / "model").exists()


@pytest.mark.parametrize("content", ["", "[3]", "[" * 100_000, '{"global_step": "4"}', '{"global_step": -1}'])
def test_a_checkpoint_without_its_state_is_unfinished(content: str, tmp_path: Path) -> None:
    """The state is written last, so the run goes on from the one before."""
    assert step_of(tmp_path) is None
    (tmp_path / "trainer_state.json").write_text(content, encoding="utf-8")
    assert step_of(tmp_path) is None
    (tmp_path / "trainer_state.json").write_text(json.dumps({"global_step": 4}))
    assert step_of(tmp_path) == 4


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.mark.long
@pytest.mark.parametrize("first", ["request.json", "checkpoints"])
def test_what_a_kill_leaves_of_the_partial_folder_goes_with_the_next_call(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = shutil.rmtree

    def dies(path: Path, *args: Any, **options: Any) -> None:
        if Path(path).parent != tmp_path:
            return remove(path, *args, **options)
        part = Path(path) / first
        remove(part) if part.is_dir() else part.unlink()
        raise Killed

    monkeypatch.setattr(shutil, "rmtree", dies)
    with pytest.raises(Killed):
        train(SENTENCES, MODEL, TRAINING, tmp_path / "model", seed=1)
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) > 1
    with pytest.raises(InputError, match="without --force"):
        train(SENTENCES, MODEL, TRAINING, tmp_path / "model", seed=1)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_a_partial_folder_beside_its_own_finished_model_is_used_up(unfinished: Path, seed: int, tmp_path: Path) -> None:
    """Killed between the two: the model is there, and what it was made from. Another model's stays, to go on from."""
    train(SENTENCES, MODEL, TRAINING, tmp_path / "model", seed=seed)
    shutil.copytree(unfinished / "model.partial", tmp_path / "model.partial")
    with pytest.raises(InputError, match="without --force"):
        train(SENTENCES, MODEL, TRAINING, tmp_path / "model", seed=1)
    assert (tmp_path / "model.partial").exists() == (seed == 2)
