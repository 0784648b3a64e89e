"""The global random states of all libraries that training uses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def kept_random_states() -> Iterator[None]:
    """Afterwards all global random states are as before."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
