"""Settings of the gated CNN."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.lmtrain.architectures.settings import NetworkSettings


class GatedCNNSettings(NetworkSettings):
    """Residual blocks of one gated convolution each."""

    architecture: Literal["gated_cnn"] = "gated_cnn"
    presets = {"tiny": {"layers": 6, "kernel_size": 4}, "paper": {"kernel_size": 4}}

    kernel_size: int | None = Field(None, ge=2)  #: tokens that a convolution sees; None: 4
    tie_words: bool | None = None  #: output weights are the word vectors; None: yes


SETTINGS = GatedCNNSettings
