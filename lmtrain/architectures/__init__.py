"""The architectures that can be trained: one file each, listed here.

To add one, write a file that makes an `Architecture` and list it in `ARCHITECTURES`.
"""

from __future__ import annotations

from lmtrain.architectures import bert, gpt2
from lmtrain.architectures.base import Architecture

ARCHITECTURES: dict[str, Architecture] = {
    architecture.name: architecture for architecture in (gpt2.ARCHITECTURE, bert.ARCHITECTURE)
}

__all__ = ["ARCHITECTURES", "Architecture"]
