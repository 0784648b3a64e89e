"""A program of ``benchmarks/`` as a module: nothing there is part of the package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def program(name: str) -> ModuleType:
    """Import ``benchmarks/<name>.py``, once; dataclasses look it up under its name, and it imports its neighbours."""
    if name in sys.modules:
        return sys.modules[name]
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
