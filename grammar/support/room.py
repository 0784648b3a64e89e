"""Room for a request: memory and disk space, compared with an estimate before any work begins.

A request that does not fit is refused in one sentence with its need, the available space, and a remedy.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path

from truesource.grammar.support.errors import InputError

LARGEST_NUMBER = 2**63 - 1  #: largest count or size in arrays and files
_GROUP_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")  #: files of versions 2 and 1 of Linux control groups
_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB")


class NoRoomError(InputError):
    """More memory or disk space is needed than is available.

    Args:
        what: what needs it, such as ``the network``.
        needed: bytes, a lower estimate.
        available: bytes.
        where: their location, such as ``this machine has``.
        remedy: what to do instead.
    """

    default_code = "too-large"

    def __init__(self, what: str, needed: int, available: int, where: str, remedy: str) -> None:
        super().__init__(f"{what}: {in_bytes(needed)} are needed, and {where} {in_bytes(available)}; {remedy}")
        self.needed, self.available = needed, available


@cache
def memory() -> int | None:
    """Return bytes of memory for this process: of the machine, control group and ``ulimit -v``; None: unknown."""
    limits = [_machine(), *_of_groups(), _of_process()]
    return min((limit for limit in limits if limit is not None), default=None)


def require_memory(what: str, needed: float, remedy: str) -> None:
    """Refuse a need for more memory than is available, before allocation.

    Args:
        what: what needs it.
        needed: bytes, a lower estimate.
        remedy: what to do instead.

    Raises:
        NoRoomError: there is less memory (code ``too-large``).
    """
    available = memory()
    if available is not None and needed > available:
        raise NoRoomError(what, int(needed), available, "this machine has", remedy)


def require_items(n: int, what: str, size: int, remedy: str = "ask for fewer") -> None:
    """Refuse a number of things that do not fit in memory together.

    Args:
        n: number of them.
        what: their name, in the plural.
        size: bytes of one, a lower estimate.
        remedy: what to do instead.

    Raises:
        NoRoomError: there is less memory (code ``too-large``).
    """
    require_memory(f"{approximate(n)} {what}", n * size, remedy)


def require_disk(what: str, needed: float, folder: Path, remedy: str) -> None:
    """Refuse a need for more space than is free on the disk of a folder, before writing.

    Args:
        what: what needs it.
        needed: bytes, a lower estimate.
        folder: destination; it need not exist.
        remedy: what to do instead.

    Raises:
        NoRoomError: there is less space (code ``too-large``).
    """
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        free = shutil.disk_usage(place).free
    except OSError:  # the system gives no number
        return
    if needed > free:
        raise NoRoomError(what, int(needed), free, "the disk has", remedy)


def in_bytes(n: int) -> str:
    """Return a number of bytes with a unit, such as ``1.2 TB``."""
    unit = 0
    while unit < len(_UNITS) - 1 and n >= 1000 ** (unit + 1):
        unit += 1
    return f"{n:,} bytes" if unit == 0 else f"{n / 1000**unit:,.3g} {_UNITS[unit]}" if n < 10**21 else f"{n:.0e} bytes"


def approximate(n: int) -> str:
    """Return a number as text: ``1,000,000``, or ``1e+25`` if it is long."""
    return f"{n:,}" if abs(n) < 10**19 else f"{n:.0e}"


def _machine() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _of_groups() -> list[int]:
    """Return limits of the control groups of this process, as far as the system shows them."""
    limits = [_GROUPS / name for name in _GROUP_LIMITS]
    with suppress(OSError):
        for line in _OWN_GROUPS.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            for folder in [Path(path.lstrip("/")), *Path(path.lstrip("/")).parents]:
                if not controllers:
                    limits.append(_GROUPS / folder / "memory.max")
                elif "memory" in controllers.split(","):
                    limits.append(_GROUPS / "memory" / folder / "memory.limit_in_bytes")
    result = []
    for file in limits:
        with suppress(OSError, ValueError):  # ``max`` is no limit
            result.append(int(file.read_text(encoding="ascii")))
    return result


def _of_process() -> int | None:
    try:
        import resource
    except ImportError:  # on Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft
