"""What a result was made with: versions, machine, command, times."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

DISTRIBUTION = "truesource"
SOURCE = Path(__file__).resolve().parents[2]  #: of a checkout: where ``.git`` is


def now() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def provenance(seed: int, started: str, seeds: Sequence[int] | None = None) -> dict[str, Any]:
    """Versions, machine, command and seeds of this process; ``seeds``: of the networks, where they have their own."""
    return {
        "truesource": version(DISTRIBUTION),
        "commit": commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in dependencies()},
        "command": shlex.join(["truesource", *sys.argv[1:]]),
        "seed": seed,
        **({} if seeds is None else {"seeds": list(seeds)}),
        "started": started,
        "finished": now(),
    }


def dependencies() -> list[str]:
    """Names of all packages that this one asks for to run, those of its extras included, in order."""
    asked = [each for each in requires(DISTRIBUTION) or () if not re.search(r"extra == .dev\b", each)]
    names = {re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0] for each in asked}
    return sorted(names - {DISTRIBUTION}, key=str.lower)


def commit(folder: Path = SOURCE) -> str | None:
    """The git commit of the source that runs, with ``+`` where files differ from it; None of an installed package.

    Args:
        folder: where ``.git`` is, if this is a checkout.
    """
    if not (folder / ".git").exists():
        return None
    try:
        head, changed = (_git(folder, *call) for call in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno")))
    except (OSError, subprocess.SubprocessError):  # there is no git, or no commit
        return None
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    call = ["git", "-C", str(folder), *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
