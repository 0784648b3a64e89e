"""Settings of RoBERTa."""

from __future__ import annotations

from typing import Literal

from truesource.lmtrain.architectures.settings import EncoderSettings


class RoBERTaSettings(EncoderSettings):
    """A RoBERTa."""

    architecture: Literal["roberta"] = "roberta"
    presets = {"tiny": {"heads": 4, "local_start": True}, "paper": {"heads": 8, "ffn_dim": 256}}


SETTINGS = RoBERTaSettings
