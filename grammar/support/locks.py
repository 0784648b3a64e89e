"""The one lock of whatever a call writes: of two calls with the same target, one works and the other is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from truesource.grammar.support.errors import InputError


class BusyError(InputError):
    """Another process is writing what this one was to write."""

    default_code = "busy"


_held: dict[Path, int] = {}  #: targets that this process holds, and the thread that took each


def place_of(target: str | Path) -> Path:
    """The absolute path of a target; links to one folder have one place.

    Raises:
        InputError: the target has no name, such as ``/``, or the system cannot have such a path.
    """
    target = Path(target)
    try:
        place = target.resolve() if target.is_dir() else target.parent.resolve() / target.name
    except OSError as error:
        raise _unwritable(target, error) from error
    if not place.name or place.name == "..":
        raise InputError("name the file or folder to make", target)
    return place


def lock_file(target: str | Path) -> Path:
    """The hidden file beside a target that its lock is taken on."""
    place = place_of(target)
    return place.with_name(f".{place.name}.lock")


@contextmanager
def exclusive(target: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a file or folder that is to be written; folders above it are made.

    The system frees the lock however the process ends, so what a killed process leaves of it blocks nobody; the next
    holder removes the file. A thread that holds the lock may take it again. On a network file system the lock is as
    good as that system's `flock`.

    Args:
        target: it need not exist.
        wait: wait until the other process ends.

    Raises:
        BusyError: another process or thread holds it, and ``wait`` is false.
        InputError: its folder cannot be written to.
    """
    from filelock import FileLock, Timeout

    place = place_of(target)
    if _held.get(place) == threading.get_ident():
        yield
        return
    file = lock_file(place)
    lock = FileLock(file, timeout=-1 if wait else 0)
    made = _make_folders(place.parent)
    try:
        lock.acquire()
    except Timeout:
        raise BusyError(
            "another process is writing this; wait until it ends, or choose another place", target
        ) from None
    except OSError as error:
        raise _unwritable(place.parent, error) from error
    _held[place] = threading.get_ident()
    try:
        yield
    finally:
        del _held[place]
        with suppress(OSError):  # a disk that has become read-only keeps the file, which blocks nobody
            file.unlink(missing_ok=True)  # before the release: who waits finds the name gone, and opens a new file
        lock.release()
        with suppress(OSError):  # folders with something in them stay
            for folder in made:
                folder.rmdir()


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it; the ones that were not there, the innermost first."""
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return missing


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot write here: {error.strerror or error}; choose another place", path, code="unwritable")
