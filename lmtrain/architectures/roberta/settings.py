"""Settings of RoBERTa."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.lmtrain.architectures.settings import EncoderSettings
from truesource.lmtrain.config import ARCHITECTURE


class RoBERTaSettings(EncoderSettings):
    """A RoBERTa."""

    architecture: Literal["roberta"] = Field("roberta", description=ARCHITECTURE)
    presets = {"tiny": {"heads": 4, "local_start": True}, "paper": {"heads": 8, "ffn_dim": 256}}


SETTINGS = RoBERTaSettings
