"""The architectures that can be trained: one file each, listed here.

To add one, write a file that makes an `Architecture`, list it in `ARCHITECTURES`, and say in
`lmtrain.model_registry.TAKES` which settings it takes and in `lmtrain.presets` which are good ones. Importing this
makes those that are not part of `transformers` known to its ``Auto`` classes.
"""

from __future__ import annotations

from truesource.lmtrain.architectures import adaptive, bert, deberta, gated_cnn, gpt2, llama, lstm, opt, roberta
from truesource.lmtrain.architectures.base import Architecture

ARCHITECTURES: dict[str, Architecture] = {
    module.ARCHITECTURE.name: module.ARCHITECTURE
    for module in (gpt2, opt, llama, adaptive, lstm, gated_cnn, bert, roberta, deberta)
}


def architecture_of(model_type: str) -> Architecture | None:
    """The architecture whose configurations have this ``model_type``; None: it is not known here."""
    return next((found for found in ARCHITECTURES.values() if found.model_type == model_type), None)


__all__ = ["ARCHITECTURES", "Architecture", "architecture_of"]
