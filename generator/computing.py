"""The device and precision that a call names for networks; `truesource.lmtrain.device` checks them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, get_args

Dtype = Literal["float32", "bfloat16", "float16"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
DTYPE: Dtype = "float32"  #: precision of networks, if none is named
DEVICE = r"^(auto|cpu|mps|cuda(:\d+)?)$"  #: how devices are written


@dataclass(frozen=True)
class Computing:
    """A device and a precision, as they are written; None: not named."""

    device: str | None = None
    dtype: str | None = None


_UNNAMED = Computing()
_CURRENT: ContextVar[Computing] = ContextVar("computing", default=_UNNAMED)


def current() -> Computing:
    """Return the device and precision that the running block has set."""
    return _CURRENT.get()


@contextmanager
def named_computing(device: str | None = None, dtype: str | None = None) -> Iterator[None]:
    """Name a device and a precision for a block; None: as around it."""
    around = current()
    token = _CURRENT.set(Computing(device or around.device, dtype or around.dtype))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def precision_parts() -> dict[str, object]:
    """Return the part of a signature: the precision of the networks, where it is not float32."""
    dtype = current().dtype or DTYPE
    return {} if dtype == DTYPE else {"networks": dtype}
