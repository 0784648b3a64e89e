"""DeBERTa: a masked transformer whose attention sees words and distances apart (He et al. 2021, 2023)."""

from __future__ import annotations

from typing import Any

from transformers import DebertaV2Config, DebertaV2ForMaskedLM

from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.architectures.deberta.settings import DeBERTaSettings
from truesource.lmtrain.architectures.encoders import encoder_settings
from truesource.lmtrain.architectures.local_start import start_local_distances
from truesource.lmtrain.tokenizer import Encoder

_V3: dict[str, Any] = {"share_att_key": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm"}
VARIANTS: dict[str | None, dict[str, Any]] = {
    None: {},
    "v3": _V3,
    "v2": {**_V3, "conv_kernel_size": 3, "conv_act": "gelu"},
}


def build(config: DeBERTaSettings, vocabulary: Encoder) -> DebertaV2ForMaskedLM:
    """A DeBERTa with random weights.

    Content-to-position and position-to-content attention, no positions in the input, in all variants.
    Without ``variant`` every distance has a vector and every layer its own projections of it, as in the first
    paper and the models of Jumelet and Zuidema (2023). ``v3`` has the settings of the released v3 models:
    distances in 256 buckets that widen logarithmically, their vectors normalised and projected as words are.
    ``v2`` adds a convolution over three words beside the first layer, as the released v2 models have it.
    As masked models v2 and v3 differ in nothing else: replaced-token detection is another objective.
    """
    model = DebertaV2ForMaskedLM(
        DebertaV2Config(
            **encoder_settings(config, vocabulary),
            type_vocab_size=0,
            relative_attention=True,
            pos_att_type=["c2p", "p2c"],
            position_biased_input=False,
            **VARIANTS[config.variant],
        )
    )
    if config.local_start:
        start_local_distances(model.deberta, vocabulary.mask)
    return model


ARCHITECTURE = NetworkArchitecture(DeBERTaSettings, head="cls", build=build)
