"""Settings of the gated CNN."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.lmtrain.architectures.settings import NetworkSettings
from truesource.lmtrain.config import ARCHITECTURE


class GatedCNNSettings(NetworkSettings):
    """Residual blocks of one gated convolution each."""

    architecture: Literal["gated_cnn"] = Field("gated_cnn", description=ARCHITECTURE)
    presets = {"tiny": {"layers": 6, "kernel_size": 4}, "paper": {"kernel_size": 4}}

    kernel_size: int | None = Field(None, ge=2, description="Number of tokens that a convolution sees (default: 4).")
    tie_words: bool | None = Field(None, description="Use the word vectors as output weights (default: yes).")


SETTINGS = GatedCNNSettings
