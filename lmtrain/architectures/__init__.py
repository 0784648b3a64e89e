"""The architectures that can be trained, a folder each, found by walking this one.

A folder has ``settings.py`` with ``SETTINGS``, a subclass of `truesource.lmtrain.config.ModelConfig` (no torch), and
``model.py`` with ``ARCHITECTURE``, one of the two kinds in `truesource.lmtrain.architectures.base`. The name of the
folder is that of the architecture. Nothing else lists them; see `truesource.lmtrain.model_registry`.
"""

from __future__ import annotations

import pkgutil

DEFAULT = "gpt2"


def names() -> list[str]:
    """All architectures, in alphabetical order; quick, for the help of the command."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.ispkg)
