"""The code of a network in its model folder, so that `transformers` opens the folder where truesource is not installed.

The files are the modules of the network themselves. Only the names in their imports change: beside each other they are
imported relatively. `transformers` runs them where ``trust_remote_code=True`` is given, and nothing here ever does.
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.support.files import write_text
from truesource.lmtrain import architectures

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_PACKAGE = architectures.__name__
_IMPORT = re.compile(rf"^from {re.escape(_PACKAGE)}\.(\w+) import", re.MULTILINE)
_HEAD = "# Of truesource (Apache-2.0), which need not be installed.\n"


def auto_map(model: PreTrainedModel) -> dict[str, str] | None:
    """Where `transformers` finds configuration and network in a folder, for ``config.json``; None: it has its own."""
    if not _travels(model):
        return None
    file = _file_of(model)
    return {
        "AutoConfig": f"{file}.{type(model.config).__name__}",
        "AutoModelForCausalLM": f"{file}.{type(model).__name__}",
    }


def write_code(folder: Path, model: PreTrainedModel) -> None:
    """Write the code of a network of ours beside its weights; nothing of other networks."""
    if not _travels(model):
        return
    own = sys.modules[type(model).__module__]
    files = {_file_of(model): own}
    waiting = [own]
    while waiting:
        for name in _IMPORT.findall(inspect.getsource(waiting.pop())):
            if name not in files:
                files[name] = import_module(f"{_PACKAGE}.{name}")
                waiting.append(files[name])
    for name, module in files.items():
        write_text(folder / f"{name}.py", _HEAD + _IMPORT.sub(r"from .\1 import", inspect.getsource(module)))


def code_travels(name: str) -> bool:
    """Whether the folders of an architecture of ours hold its code: it has a module ``network``."""
    return find_spec(f"{_PACKAGE}.{name}.network") is not None


def _travels(model: PreTrainedModel) -> bool:
    module = type(model).__module__
    return module.startswith(f"{_PACKAGE}.") and module.endswith(".network")


def _file_of(model: PreTrainedModel) -> str:
    return f"modeling_{model.config.model_type}"
