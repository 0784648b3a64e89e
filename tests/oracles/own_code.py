"""A language for architectures of one's own, and their training in a few steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from half_certain import Source

from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.training import train

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "own_networks.py"
STEPS = TrainConfig(max_steps=20, batch_tokens=64, eval_every=10, checkpoint_every=10, learning_rate=1e-2)
SOURCE = Source(train=200, dev=30)
SENTENCES = [["a", "b", "."], ["c", "d", "a", "b", "!"], ["."], ["c", "d", "c", "d", "a", "b", "?"]]


def trained(reference: str, out: Path, *, steps: TrainConfig = STEPS, seed: int = 2, **settings: Any) -> Any:
    """The model that `train` makes of code."""
    return train(SOURCE, model_settings(reference, **settings), steps, out, seed=seed)
