"""The code of a network in its model folder, so that `transformers` opens the folder where truesource is not installed.

The files are the modules of the network themselves, with relative imports of each other. The file of a custom module
travels unchanged, if it needs no other file of its owner. `transformers` runs them under ``trust_remote_code=True``;
nothing here ever does.
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from truesource.grammar.support.atomic_files import write_text
from truesource.lmtrain import architectures
from truesource.lmtrain.own.hub_network import CausalHubNetwork, HubNetwork, MaskedHubNetwork
from truesource.lmtrain.own.network import OwnNetwork
from truesource.lmtrain.training_record import OWN_NETWORK

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_IMPORT = re.compile(r"^from (truesource\.lmtrain\.[\w.]+\.(\w+)) import", re.MULTILINE)
_HEAD = "# Of truesource (Apache-2.0), which need not be installed.\n"
_OWN_CODE = "own_code"  #: the file of a custom module, in its folder
_JOINED = """\
from .{code} import {root}
from .{module} import {base}, {config}


class {network}({base}):
    make = staticmethod({name})
"""


def auto_map(model: PreTrainedModel) -> dict[str, str] | None:
    """Return the classes by which `transformers` opens a folder, for ``config.json``; None: it has its own."""
    if not _travels(model):
        return None
    file = _file_of(model)
    causal = getattr(model.config, "objective", "causal") == "causal"
    return {
        "AutoConfig": f"{file}.{type(model.config).__name__}",
        "AutoModelForCausalLM" if causal else "AutoModelForMaskedLM": f"{file}.{type(model).__name__}",
    }


def write_code(folder: Path, model: PreTrainedModel) -> None:
    """Write the code of a network of ours, or of a custom module, next to its weights; nothing for other networks."""
    if not _travels(model):
        return
    if isinstance(model, OwnNetwork):
        files = _write_own(folder, model)
    else:
        files = {_file_of(model): sys.modules[type(model).__module__]}
    waiting = [*files.values()]
    while waiting:
        for path, name in _IMPORT.findall(inspect.getsource(waiting.pop())):
            if name not in files:
                files[name] = import_module(path)
                waiting.append(files[name])
    for name, module in files.items():
        write_text(folder / f"{name}.py", _HEAD + _IMPORT.sub(r"from .\2 import", inspect.getsource(module)))


def why_code_stays(model: PreTrainedModel) -> dict[str, str]:
    """Return ``code_stays`` of ``training.json``: why a custom module's file cannot go into the folder, if so."""
    reason = model.code_copy.reason if isinstance(model, OwnNetwork) else None
    return {} if reason is None else {"code_stays": reason}


def _write_own(folder: Path, model: OwnNetwork) -> dict[str, ModuleType]:
    """Write the custom file and the file that joins it to ours; return the modules of ours that it needs, by name."""
    copy, ours = model.code_copy, sys.modules[HubNetwork.__module__]
    base = CausalHubNetwork if model.config.objective == "causal" else MaskedHubNetwork
    module = ours.__name__.rpartition(".")[2]
    joined = _JOINED.format(
        code=_OWN_CODE,
        root=copy.name.partition(".")[0],
        name=copy.name,
        module=module,
        base=base.__name__,
        config=type(model.config).__name__,
        network=type(model).__name__,
    )
    (folder / f"{_OWN_CODE}.py").write_bytes(copy.content or b"")
    write_text(folder / f"{OWN_NETWORK}.py", _HEAD + joined)
    if model.config.objective == "causal" and model.generation_config is not None:
        model.generation_config.save_pretrained(folder)  # `save_pretrained` of a network without `generate` does not
    return {module: ours}


def _travels(model: PreTrainedModel) -> bool:
    if isinstance(model, OwnNetwork):
        return model.code_copy.content is not None
    return type(model).__module__.startswith(f"{architectures.__name__}.")


def _file_of(model: PreTrainedModel) -> str:
    return OWN_NETWORK if isinstance(model, OwnNetwork) else f"modeling_{model.config.model_type}"
