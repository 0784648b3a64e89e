"""The device and precision of networks in a call; `truesource.lmtrain.device` checks them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, get_args

Dtype = Literal["float32", "bfloat16", "float16"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
DTYPE: Dtype = "float32"  #: default precision of networks
DEVICE = r"^(auto|cpu|mps|cuda(:\d+)?)$"  #: notation of devices


@dataclass(frozen=True)
class Computing:
    """A device and a precision, as text; None: not set."""

    device: str | None = None
    dtype: str | None = None


_UNNAMED = Computing()
_CURRENT: ContextVar[Computing] = ContextVar("computing", default=_UNNAMED)


def current() -> Computing:
    """Return the device and precision set by the current block."""
    return _CURRENT.get()


@contextmanager
def named_computing(device: str | None = None, dtype: str | None = None) -> Iterator[None]:
    """Set a device and a precision for a block; None: as outside."""
    around = current()
    token = _CURRENT.set(Computing(device or around.device, dtype or around.dtype))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def precision_parts() -> dict[str, object]:
    """Return the precision of the networks for signatures, if it is not float32."""
    dtype = current().dtype or DTYPE
    return {} if dtype == DTYPE else {"networks": dtype}
