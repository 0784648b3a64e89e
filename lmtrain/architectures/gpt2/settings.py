"""Settings of GPT-2."""

from __future__ import annotations

from typing import Literal

from truesource.lmtrain.architectures.settings import TransformerSettings


class GPT2Settings(TransformerSettings):
    """A GPT-2."""

    architecture: Literal["gpt2"] = "gpt2"
    presets = {"tiny": {"heads": 4}, "paper": {"heads": 8, "ffn_dim": 1024, "max_positions": 1024}}


SETTINGS = GPT2Settings
