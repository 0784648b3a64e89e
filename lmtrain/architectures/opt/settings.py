"""Settings of OPT."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.lmtrain.architectures.settings import TransformerSettings
from truesource.lmtrain.config import ARCHITECTURE


class OPTSettings(TransformerSettings):
    """An OPT."""

    architecture: Literal["opt"] = Field("opt", description=ARCHITECTURE)
    presets = {
        "tiny": {"heads": 4},
        "paper": {"heads": 8, "ffn_dim": 256, "max_positions": 512, "tie_words": False},
    }

    tie_words: bool | None = Field(None, description="Use the word vectors as output weights (default: yes).")


SETTINGS = OPTSettings
