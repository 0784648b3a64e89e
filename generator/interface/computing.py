"""Where networks run, and in which precision, as a call names it; see `truesource.lmtrain.device`, which checks it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Computing:
    """A device and a precision, as they are written; None: not named."""

    device: str | None = None
    dtype: str | None = None


_UNNAMED = Computing()
_CURRENT: ContextVar[Computing] = ContextVar("computing", default=_UNNAMED)


def current() -> Computing:
    """What the running block has set."""
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
    """Part of a signature: the precision of the networks, where it is not float32."""
    dtype = current().dtype or "float32"
    return {} if dtype == "float32" else {"networks": dtype}
