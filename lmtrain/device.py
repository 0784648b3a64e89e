"""Device, precision and threads of networks: one setting for all verbs, configurations and calls.

`computing` sets it for a block; a call takes from there what it does not name. Training has a precision of its own,
`truesource.lmtrain.config.TrainConfig.precision`, in which weights stay 32-bit numbers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from truesource.generator.computing import DEVICE, DTYPE, DTYPES, current, named_computing
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.threads import at_most

if TYPE_CHECKING:
    import torch

AUTO = "auto"  #: a GPU of CUDA if there is one, else the CPU


@contextmanager
def computing(device: str | None = None, dtype: str | None = None, threads: int | None = None) -> Iterator[None]:
    """Load and train networks on a device and in a precision while the block runs.

    Args:
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:1``, ``mps``; None: as around the block.
        dtype: of the weights of networks that are loaded: ``float32``, ``bfloat16``, ``float16``; None: as around.
        threads: maximum for networks on a CPU and for exact computations; None: as around.

    Raises:
        InputError: there is no such device or precision (codes ``no-device``, ``no-dtype``), or no thread
            (``bad-setting``).
    """
    if device not in (None, AUTO, "cpu"):
        torch_device(device)
    dtype_name(dtype)
    with (
        named_computing(device, dtype),
        at_most(threads),
        nullcontext() if threads is None else _torch_threads(threads),
    ):
        yield


def torch_device(device: str | None = None) -> torch.device:
    """Return the named device, or the device of the running block.

    Raises:
        InputError: there is no such device (code ``no-device``).
    """
    import torch

    name = device or current().device or AUTO
    if not isinstance(name, str) or re.match(DEVICE, name) is None:
        raise InputError(f"a device is auto, cpu, cuda, cuda:1 or mps, not {name!r}", code="no-device")
    if name == AUTO:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    place = torch.device(name)
    if place.type == "cuda":
        number = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (place.index or 0) >= number:
            there = "no CUDA device" if not number else f"only {number} CUDA device{'s' if number > 1 else ''}"
            raise InputError(f"device {name}: this machine has {there}; use auto or cpu", code="no-device")
    if place.type == "mps" and not torch.backends.mps.is_available():
        raise InputError("device mps: this machine has no Metal device; use auto or cpu", code="no-device")
    return place


def dtype_name(dtype: str | None = None) -> str:
    """Return the named precision, or the precision of the running block, else ``float32``.

    Raises:
        InputError: there is no such precision (code ``no-dtype``).
    """
    name = dtype or current().dtype or DTYPE
    if name not in DTYPES:
        raise InputError(f"a precision is {', '.join(DTYPES)}, not {name!r}", code="no-dtype")
    return name


def set_precision(network: torch.nn.Module) -> None:
    """Give the weights of a network the precision that the running block names; without one, they stay as they are.

    Complex and whole numbers stay as they are.
    """
    import torch

    if current().dtype is None:
        return
    dtype = getattr(torch, dtype_name())
    for values in (*network.parameters(), *network.buffers()):
        if values.is_floating_point():
            values.data = values.data.to(dtype)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread: sums, and so all that follows, then do not depend on how many there are."""
    with _torch_threads(1):
        yield


@contextmanager
def _torch_threads(number: int) -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def kept_random_states() -> Iterator[None]:
    """Restore all global random states after the block."""
    import numpy as np
    import torch

    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002
