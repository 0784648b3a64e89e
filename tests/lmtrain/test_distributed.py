"""Two processes, as `torchrun` starts them, train what one does with twice the micro-batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.distributed import any_process, sum_of, total
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.process_group import from_main_process
from truesource.lmtrain.processes import world_size
from truesource.lmtrain.snapshots import snapshots
from truesource.lmtrain.trainer import Watch
from truesource.lmtrain.training import train

#: the command, in which the second process dies after six steps
SCRIPT = """
import os, signal
from truesource.lmtrain.trainer import LossTrainer
whole = LossTrainer.compute_loss
def dies(self, *args, **kwargs):
    if (os.environ["RANK"], self.state.global_step) == ("1", 6):
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(self, *args, **kwargs)
LossTrainer.compute_loss = dies
from truesource.cli.main import main
main()
"""

#: the command in two processes, which share what they import
FORKED = """
import os, socket, sys
from truesource.cli.main import main
import truesource.cli.train, truesource.lmtrain.training
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
children = []
for rank in "01":
    os.environ |= {"RANK": rank, "LOCAL_RANK": rank}
    children.append(os.fork())
    if children[-1] == 0:
        main()
sys.exit(any([os.waitpid(child, 0)[1] for child in children]))
"""

SHAPE = {"architecture": "bert", "layers": 1, "heads": 2, "dim": 16, "ffn_dim": 32, "dropout": 0.0, "max_positions": 12}
TRAINING = {
    **{"max_steps": 8, "batch_tokens": 40, "eval_every": 2, "checkpoint_every": 4, "learning_rate": 1e-2},
    **{"warmup_steps": 2, "snapshots": "log", "mask_probability": 0.2},
}


def sentences(n: int) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [["a", "b"] * int(k) + [str(rng.choice([".", "!"]))] for k in rng.integers(1, 5, size=n)]


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def train_in_two(folder: Path, *start: str) -> subprocess.CompletedProcess[str]:
    """Train on the text file, in the processes that Python starts with these arguments."""
    (folder / "text.txt").write_text("".join(" ".join(s) + "\n" for s in sentences(60)))
    settings = [f"--set=model.{k}={v}" for k, v in SHAPE.items() if k != "architecture"]
    settings += [f"--set=training.{k}={v}" for k, v in TRAINING.items()]
    command = [*start, "train", "text.txt", "-o", "model", "--model", "bert", "--preset", "tiny", *settings]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    root = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join([root, environment.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    return subprocess.run(  # the limit ends only what hangs
        [sys.executable, *command],
        **{"cwd": folder, "env": environment, "text": True, "capture_output": True, "timeout": 3600},
    )


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process makes of the same command."""
    out = tmp_path_factory.mktemp("one") / "model"
    training = {**TRAINING, "warmup_steps": 2, "weight_decay": 0.05, "mask_probability_end": 0.2, "accumulation": 2}
    config = model_settings(**SHAPE, local_start=True, name="model")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the two: Adam makes whole steps of what rounding leaves of a gradient of 0
    try:
        train(sentences(60), config, TrainConfig(**training), out, seed=1)
    finally:
        torch.set_num_threads(threads)
    return out


def check_same(one: Path, two: Path) -> None:
    """Weights, metrics and snapshots are those of one process."""
    weights = [load_file(folder / "model.safetensors") for folder in (one, two)]
    for key, value in weights[0].items():
        torch.testing.assert_close(
            weights[1][key], value, rtol=0, atol=1e-6, msg=lambda text, key=key: f"{key}: {text}"
        )
    lines = [[json.loads(line) for line in (f / "metrics.jsonl").read_text().splitlines()] for f in (one, two)]
    for single, double in zip(*lines, strict=True):
        assert [single[k] for k in ("step", "epoch", "tokens")] == [double[k] for k in ("step", "epoch", "tokens")]
        assert single["loss"] == pytest.approx(double["loss"], abs=1e-6)
    assert [step for step, _ in snapshots(two)] == [0, 1, 2, 4, 8]
    assert json.loads((two / "training.json").read_text())["processes"] == 2
    assert not two.with_name("model.partial").exists()


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "darwin", reason="a forked process may not use the frameworks of macOS")
def test_two_processes_train_as_one_does(one: Path, tmp_path: Path) -> None:
    done = train_in_two(tmp_path, "-c", FORKED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Wrote model") == 1
    check_same(one, tmp_path / "model")


@pytest.mark.slow  # with torchrun, each process of which imports torch on its own
def test_when_one_process_dies_the_other_ends_and_both_go_on(one: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    died = train_in_two(tmp_path, *TORCHRUN, "script.py")
    assert died.returncode != 0
    assert "another process of this training has ended; run the same command again" in died.stderr
    assert "Wrote" not in died.stdout
    checkpoints = tmp_path / "model.partial" / "checkpoints"
    assert [path.name for path in checkpoints.iterdir()] == ["checkpoint-4"]
    assert len(list((checkpoints / "checkpoint-4").glob("rng_state_*.pth"))) == 2
    done = train_in_two(tmp_path, *TORCHRUN, "-m", "truesource")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Wrote model") == 1
    check_same(one, tmp_path / "model")


@pytest.mark.long
@pytest.mark.parametrize("architecture", ["gpt2", "bert"])
def test_a_step_is_the_mean_over_its_tokens(architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence a micro-batch, the longest of eleven words and the shortest of two: as if all stood in one batch."""
    found: list[dict[str, torch.Tensor]] = []

    def keep(self: Watch, args: Any, state: Any, control: Any, model: Any, **_: Any) -> None:
        found.append({name: weight.grad.clone() for name, weight in model.named_parameters()})

    monkeypatch.setattr(Watch, "on_pre_optimizer_step", keep)
    text = [["a"] * n + ["b"] for n in (1, 2, 5, 9, 1, 1)]
    shape = model_settings(**{**SHAPE, "architecture": architecture})
    losses = []
    for number, settings in enumerate(({"batch_sentences": 6}, {"batch_sentences": 1, "accumulation": 6})):
        config = TrainConfig(max_steps=1, mask_probability=1.0, clip=0.0, **settings)
        train(text, shape, config, tmp_path / str(number), seed=0)
        losses.append(json.loads((tmp_path / str(number) / "metrics.jsonl").read_text().splitlines()[1])["loss"])
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)
    one, many = found
    assert max(gradient.abs().max() for gradient in one.values()) > 0.01
    for name, gradient in one.items():
        torch.testing.assert_close(many[name], gradient, rtol=1e-5, atol=1e-7)


def test_one_process_agrees_with_itself() -> None:
    assert world_size() == 1
    assert any_process(True, False) == (True, False)
    assert total(5) == 5
    assert sum_of(0.1) == 0.1
    assert from_main_process(lambda: "made") == "made"
