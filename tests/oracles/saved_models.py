"""Model folders made without training."""

from __future__ import annotations

from pathlib import Path

import torch

from lmtrain.architectures import ARCHITECTURES
from lmtrain.config import ModelConfig
from lmtrain.tokenizer import Vocabulary, build_tokenizer

WORDS = [f"w{i}" for i in range(7)]


def save_model(folder: Path, architecture: str = "gpt2", seed: int = 0) -> Path:
    """A tiny network with large random weights, for sentences of at most 9 words (8 if masked)."""
    tokenizer = build_tokenizer([WORDS], objective=ARCHITECTURES[architecture].objective)
    torch.manual_seed(seed)
    config = ModelConfig(architecture=architecture, layers=1, heads=2, dim=8, max_positions=10)
    network = ARCHITECTURES[architecture].build(config, Vocabulary(tokenizer))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
