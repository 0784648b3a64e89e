"""Settings of BERT."""

from __future__ import annotations

from typing import Literal

from truesource.lmtrain.architectures.settings import EncoderSettings


class BERTSettings(EncoderSettings):
    """A BERT."""

    architecture: Literal["bert"] = "bert"
    presets = {
        "tiny": {"heads": 4, "local_start": True},
        "paper": {"heads": 8, "ffn_dim": 256, "max_positions": 512},
    }


SETTINGS = BERTSettings
