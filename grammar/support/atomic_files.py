"""Files and folders that are written so that a failure leaves the old ones."""

from __future__ import annotations

import ctypes
import gzip
import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

from truesource.grammar.support.errors import InputError

#: targets whose new content waits beside them until all of a set is there, and where each waits
_waiting: ContextVar[dict[Path, Path | None] | None] = ContextVar("waiting", default=None)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  #: of Linux
_LEFTOVER = re.compile(r"\.(?P<target>.+)\.\d+-[0-9a-f]{8}\.(?P<kind>partial|retired)")


@contextmanager
def opened_to_write(path: Path, *, packed: bool, level: int = 9) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """A file to write, packed by gzip or not; equal content gives equal bytes, whatever the time and the name.

    Args:
        path: of the file, such as the temporary one of `atomic_path`.
        packed: by gzip.
        level: of the packing, 1 (fast) to 9 (small).
    """
    with path.open("wb") as raw:
        if not packed:
            yield raw
            return
        with gzip.GzipFile("", "wb", compresslevel=level, fileobj=raw, mtime=0) as stream:
            yield stream


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``target``; rename it over ``target`` only if the block succeeds.

    Works for a file or a folder. When the block fails (full disk, Ctrl-C) the temporary is removed and
    an existing ``target`` stays as it was. What a kill leaves is for `remove_leftovers`.
    """
    target = Path(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder: {error.strerror}", target.parent, code="unwritable") from error
    temporary = _leftover_of(target)
    waiting = _waiting.get()
    try:
        yield temporary
        if waiting is not None and target.absolute() in waiting:
            earlier, waiting[target.absolute()] = waiting[target.absolute()], temporary
            if earlier is not None:
                earlier.unlink()
            return
        replace_path(temporary, target)
    except OSError as error:
        raise InputError(
            f"cannot write: {error.strerror or error}; the old file, if any, is untouched", target, code="unwritable"
        ) from error
    finally:
        if waiting is None or temporary not in waiting.values():
            _remove(temporary)


@contextmanager
def all_at_once(targets: Iterable[str | Path]) -> Iterator[None]:
    """Files among ``targets`` that the block writes with `atomic_path` appear together, when it has succeeded.

    Where the block fails, none appears and old files stay as they were. No file system renames several files in one
    step: a kill between two renames leaves some new files and no old one of the rest, so that new and old never
    stand side by side.

    Raises:
        InputError: a file cannot be put in its place.
    """
    waiting: dict[Path, Path | None] = {Path(target).absolute(): None for target in targets}
    try:
        token = _waiting.set(waiting)
        try:
            yield
        finally:
            _waiting.reset(token)
        _put_in_place({target: temporary for target, temporary in waiting.items() if temporary is not None})
        waiting.clear()
    finally:
        for temporary in waiting.values():
            if temporary is not None:
                temporary.unlink(missing_ok=True)


def _put_in_place(written: Mapping[Path, Path]) -> None:
    """Rename finished files over their targets, as `all_at_once` says."""
    try:
        for old in list(written)[1:]:
            old.unlink(missing_ok=True)
        for target, temporary in written.items():
            temporary.replace(target)
    except OSError as error:
        path = error.filename or next(iter(written))
        raise InputError(
            f"cannot write: {error.strerror or error}; run the same command again", path, code="unwritable"
        ) from error


def replace_path(new: Path, target: Path) -> None:
    """Put a finished file or folder in the place of ``target``; whatever fails, one of the two is there.

    Folders change places in one step where the system can do that (Linux, on most file systems). Elsewhere a kill
    between two renames leaves the old folder beside ``target``, for `remove_leftovers` to put back.
    """
    if not (new.is_dir() and target.is_dir()):
        new.replace(target)
        return
    old = _leftover_of(target)
    new.replace(old)
    if not _exchanged(old, target):
        retired = _leftover_of(target, "retired")
        try:
            target.replace(retired)
            old.replace(target)
        except BaseException:
            if not target.exists():
                retired.replace(target)
            if old.exists():
                old.replace(new)
            raise
        old = retired
    _remove(old)


def _exchanged(one: Path, other: Path) -> bool:
    """Return True if two names now stand for each other's folder; False where the system could not do it."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    if rename is None:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _leftover_of(target: Path, kind: str = "partial") -> Path:
    """Return a name beside ``target`` for what `remove_leftovers` may clear up."""
    return target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.{kind}")


def remove_leftovers(target: str | Path) -> None:
    """Remove what killed processes left beside ``target`` of writing it; only for the holder of its lock.

    An old folder that was moved aside, and whose successor did not come, goes back to its place.
    """
    target = Path(target)
    for path in list(target.parent.iterdir()) if target.parent.is_dir() else ():
        match = _LEFTOVER.fullmatch(path.name)
        if match is not None and match["target"] == target.name:
            if match["kind"] == "retired" and not target.exists():
                path.replace(target)
            else:
                _remove(path)


@contextmanager
def working_folder(target: str | Path) -> Iterator[Path]:
    """Make a folder beside ``target`` for work on it, and remove it after; what a kill leaves of it is a leftover."""
    folder = _leftover_of(Path(target))
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        _remove(folder)


def discard(folder: Path, target: Path) -> None:
    """Remove a folder beside ``target`` that it needs no more; what a kill leaves of it is a leftover of ``target``."""
    leftover = _leftover_of(target)
    folder.replace(leftover)
    shutil.rmtree(leftover)


def remove_leftovers_in(folder: str | Path, *, deep: bool) -> None:
    """Remove what killed processes left of writing files in a folder; only for the holder of its lock.

    Args:
        folder: it need not exist.
        deep: anywhere in it; else files directly in it, where other processes may be at work in folders below.
    """
    for path in list(Path(folder).rglob(".*") if deep else Path(folder).glob(".*")):
        if _LEFTOVER.fullmatch(path.name) and (deep or path.is_file()):
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def write_text(target: str | Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(target: str | Path, value: Any) -> None:
    """Write JSON atomically; NaN and infinities are refused (`ValueError`)."""
    write_text(target, json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def write_json_lines(target: str | Path, values: Iterable[Any]) -> None:
    """Write a JSON value a line, atomically; NaN and infinities are refused (`ValueError`)."""
    with atomic_path(target) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for value in values:
            file.write(f"{json.dumps(value, allow_nan=False, ensure_ascii=False)}\n")
