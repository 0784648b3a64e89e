"""Settings of OPT."""

from __future__ import annotations

from typing import Literal

from truesource.lmtrain.architectures.settings import TransformerSettings


class OPTSettings(TransformerSettings):
    """An OPT."""

    architecture: Literal["opt"] = "opt"
    presets = {
        "tiny": {"heads": 4},
        "paper": {"heads": 8, "ffn_dim": 256, "max_positions": 512, "tie_words": False},
    }

    tie_words: bool | None = None  #: output weights are the word vectors; None: yes


SETTINGS = OPTSettings
