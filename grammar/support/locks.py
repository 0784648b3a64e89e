"""The outputs of one call: locked while it works, complete when it ends, and resumable only by it after a kill.

All outputs of a call have locks: of two calls with the same target, one works and the other is refused.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from truesource.grammar.support.atomic_files import all_at_once, remove_leftovers, remove_leftovers_in
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import real_path, refuse_existing


class BusyError(InputError):
    """Another process is writing the same output."""

    default_code = "busy"


_held: dict[Path, int] = {}  #: targets that this process has locked, and the thread that locked each


def place_of(target: str | Path) -> Path:
    """Return the absolute path of a target; links to one folder have one path.

    Raises:
        InputError: the target has no name, such as ``/``, is a link to itself, or is impossible on this system.
    """
    target = Path(target)
    try:
        place = real_path(target) if target.is_dir() else real_path(target.parent) / target.name
        if _is_circular(target):
            raise InputError(
                "a symbolic link leads back to itself; remove it or choose another place", target, code="unwritable"
            )
    except OSError as error:
        raise _unwritable(target, error) from error
    if not place.name or place.name == "..":
        raise InputError("this path has no name; use a file or folder name", target)
    return place


def _is_circular(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def lock_file(target: str | Path) -> Path:
    """Return the hidden lock file next to a target."""
    place = place_of(target)
    return place.with_name(f".{place.name}.lock")


@contextmanager
def exclusive(target: str | Path, *, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a file or folder to be written; create the folders above it.

    The system frees the lock however the process ends, so a killed process blocks nobody; the next holder removes the
    file. A thread that holds the lock may take it again. On a network file system the lock is as reliable as that
    system's `flock`.

    Args:
        target: it need not exist.
        wait: wait until the other process ends.

    Raises:
        BusyError: another process or thread holds it, and ``wait`` is false.
        InputError: its folder is not writable.
    """
    from filelock import FileLock, Timeout

    place = place_of(target)
    if _held.get(place) == threading.get_ident():
        yield
        return
    file = lock_file(place)
    lock = FileLock(file, timeout=-1 if wait else 0)
    created = _make_folders(place.parent)
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
        with suppress(OSError):  # on a disk that became read-only the file remains, which blocks nobody
            file.unlink(missing_ok=True)  # before the release: a waiting process then opens a new file
        lock.release()
        with suppress(OSError):  # non-empty folders remain
            for folder in created:
                folder.rmdir()


def _make_folders(folder: Path) -> list[Path]:
    """Create a folder and its parents; return the created ones, the innermost first."""
    try:
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return missing


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot write here: {error.strerror or error}; choose another place", path, code="unwritable")


@dataclass(frozen=True)
class Outputs:
    """Outputs claimed by a call; see `claimed`."""

    targets: tuple[Path, ...]
    resumed: bool  #: whether an earlier process of the same call was interrupted

    def together(self, *more: Path) -> AbstractContextManager[None]:
        """Put files that the block writes in place together when it ends, all or none.

        See `truesource.grammar.support.atomic_files.all_at_once`.

        Args:
            more: files in addition to the targets, such as files in a target folder.
        """
        return all_at_once((*more, *self.targets))


@contextmanager
def claimed(targets: Sequence[str | Path], call: str, *, force: bool) -> Iterator[Outputs]:
    """Hold the locks of all outputs of a call; refuse existing ones that are not its own.

    While the call works, each target has a file ``.NAME.unfinished`` next to it with its ``call``. It remains if the
    call is interrupted: the same call may then overwrite its outputs. For other calls they are existing files.

    Args:
        targets: files or folders.
        call: digest of the request.
        force: overwrite existing targets.

    Raises:
        InputError: a target exists and is not the call's own, another process is at work on one, or a folder is not
            writable.
    """
    named = {place_of(target): Path(target) for target in targets}
    with ExitStack() as stack:
        for place in sorted(named):  # in a fixed order, so that one of two calls gets the first
            stack.enter_context(exclusive(named[place]))
        ours = {place for place in named if _call_of(place) == call}
        _clear(named, ours, force)
        before = {place: _identity(place) for place in named}
        finished = False
        try:
            _note_down(named, call)
            yield Outputs(tuple(named), bool(ours))
            finished = True
        except SystemExit as stop:
            finished = not stop.code
            raise
        finally:
            _forget(
                place
                for place in named
                if finished or (place not in ours and _identity(place) in (None, before[place]))
            )


def _clear(named: Mapping[Path, Path], resumable: Collection[Path], force: bool) -> None:
    """Remove leftovers of killed processes, and refuse existing targets that are not ``resumable``."""
    for place in named:
        remove_leftovers(place)
        remove_leftovers_in(place, deep=True)
    try:
        for place in named:
            if place not in resumable:
                refuse_existing(named[place], force)
    except InputError:
        if all(place.exists() for place in named):  # the call was killed after it had written everything
            _forget(resumable)
        raise


def _note_down(places: Iterable[Path], call: str) -> None:
    for place in places:
        try:
            _note(place).write_text(call, encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write here: {error.strerror or error}", place.parent) from error


def _forget(places: Iterable[Path]) -> None:
    with suppress(OSError):  # the disk is no longer writable: the notes remain valid
        for place in places:
            _note(place).unlink(missing_ok=True)


def _note(place: Path) -> Path:
    return place.with_name(f".{place.name}.unfinished")


def _call_of(place: Path) -> str | None:
    """Return the interrupted call that was writing this; None without one."""
    try:
        return _note(place).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _identity(place: Path) -> tuple[int, int, int] | None:
    """Return numbers that change if the file, or the listing of a folder, is written."""
    try:
        result = place.stat()
    except OSError:
        return None
    return result.st_ino, result.st_mtime_ns, result.st_size
