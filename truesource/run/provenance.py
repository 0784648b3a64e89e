"""What a result was made with: versions, machine, command, times."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("numpy", "numba", "scipy", "networkx", "nltk", "torch", "transformers", "tokenizers", "pyarrow", "datasets")


def now() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def provenance(seed: int, started: str) -> dict[str, Any]:
    """Versions, machine and command of this process."""
    return {
        "truesource": version("truesource"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "command": shlex.join(["truesource", *sys.argv[1:]]),
        "seed": seed,
        "started": started,
        "finished": now(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
