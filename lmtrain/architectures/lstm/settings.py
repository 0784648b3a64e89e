"""Settings of the LSTM."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.lmtrain.architectures.settings import NetworkSettings
from truesource.lmtrain.config import ARCHITECTURE


class LSTMSettings(NetworkSettings):
    """Stacked LSTM layers."""

    architecture: Literal["lstm"] = Field("lstm", description=ARCHITECTURE)
    presets = {"paper": {"layers": 3, "dim": 512}}

    tie_words: bool | None = Field(None, description="Use the word vectors as output weights (default: yes).")


SETTINGS = LSTMSettings
