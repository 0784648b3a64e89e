"""A language for architectures of one's own, and their training in a few steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.training import train

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "own_networks.py"
STEPS = TrainConfig(max_steps=20, batch_tokens=64, eval_every=10, checkpoint_every=10, learning_rate=1e-2)
SENTENCES = [["a", "b", "."], ["c", "d", "a", "b", "!"], ["."], ["c", "d", "c", "d", "a", "b", "?"]]


class Source:
    """(a b | c d)+ with one of three ends: what follows is half certain."""

    splits = ("train", "dev")

    def sentences(self, split: str) -> list[list[str]]:
        rng = np.random.default_rng(["train", "dev"].index(split))
        return [
            [w for pair in rng.integers(2, size=rng.integers(1, 4)) for w in (["a", "b"], ["c", "d"])[pair]]
            + [str(rng.choice([".", "!", "?"]))]
            for _ in range(200 if split == "train" else 30)
        ]


def trained(reference: str, out: Path, *, steps: TrainConfig = STEPS, seed: int = 2, **settings: Any) -> Any:
    """The model that `train` makes of code."""
    return train(Source(), model_settings(reference, **settings), steps, out, seed=seed)
