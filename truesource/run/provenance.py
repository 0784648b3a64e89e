"""What a result was made with: versions, machine, command, times."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("numpy", "numba", "scipy", "networkx", "nltk", "torch", "transformers", "tokenizers", "pyarrow", "datasets")


def now() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def provenance(seed: int, started: str, seeds: Sequence[int] | None = None) -> dict[str, Any]:
    """Versions, machine, command and seeds of this process; ``seeds``: of the networks, where they have their own."""
    return {
        "truesource": version("truesource"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "command": shlex.join(["truesource", *sys.argv[1:]]),
        "seed": seed,
        **({} if seeds is None else {"seeds": list(seeds)}),
        "started": started,
        "finished": now(),
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
