"""The verbs of the command, as tests walk over them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truesource.cli.app import VERBS, load


def verbs() -> Iterator[tuple[str, Any]]:
    """Every verb that help shows, by its name, such as ``evaluate pairs``."""
    for name in VERBS:
        command = load(name)
        for inner, each in getattr(command, "commands", {}).items():
            if not each.hidden:
                yield f"{name} {inner}", each
        if not hasattr(command, "commands"):
            yield name, command
