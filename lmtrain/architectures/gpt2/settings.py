"""Settings of GPT-2."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.lmtrain.architectures.settings import TransformerSettings
from truesource.lmtrain.config import ARCHITECTURE


class GPT2Settings(TransformerSettings):
    """A GPT-2."""

    architecture: Literal["gpt2"] = Field("gpt2", description=ARCHITECTURE)
    presets = {"tiny": {"heads": 4}, "paper": {"heads": 8, "ffn_dim": 1024, "max_positions": 1024}}


SETTINGS = GPT2Settings
