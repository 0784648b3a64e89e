"""The processes of one training: how many there are, and which one writes."""

from __future__ import annotations

import os


def world_size() -> int:
    """Return the number of processes that train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Return the number of this process among them, from 0 on."""
    return int(os.environ.get("RANK", "0"))


def is_main_process() -> bool:
    """Return True in the process that writes: the only one, or the first of several."""
    return rank() == 0
