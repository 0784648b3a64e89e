"""Settings of the LSTM."""

from __future__ import annotations

from typing import Literal

from truesource.lmtrain.architectures.settings import NetworkSettings


class LSTMSettings(NetworkSettings):
    """Stacked LSTM layers."""

    architecture: Literal["lstm"] = "lstm"
    presets = {"paper": {"layers": 3, "dim": 512}}

    tie_words: bool | None = None  #: output weights are the word vectors; None: yes


SETTINGS = LSTMSettings
