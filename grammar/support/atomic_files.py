"""Files and folders written so that a failure leaves the old ones intact."""

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

#: targets of a set that is put in place together, and the path of each finished new file
_waiting: ContextVar[dict[Path, Path | None] | None] = ContextVar("waiting", default=None)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  #: constants of Linux
_LEFTOVER = re.compile(r"\.(?P<target>.+)\.\d+-[0-9a-f]{8}\.(?P<kind>partial|retired)")


@contextmanager
def opened_to_write(path: Path, *, packed: bool, level: int = 9) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open a file to write, compressed by gzip or not; equal content gives equal bytes, whatever the time and name.

    Args:
        path: path of the file, such as the temporary one of `atomic_path`.
        packed: whether to compress by gzip.
        level: compression level, 1 (fast) to 9 (small).
    """
    with path.open("wb") as raw:
        if not packed:
            yield raw
            return
        with gzip.GzipFile("", "wb", compresslevel=level, fileobj=raw, mtime=0) as stream:
            yield stream


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Yield a temporary path next to ``target``; rename it over ``target`` only if the block succeeds.

    Works for a file or a folder. If the block fails (full disk, Ctrl-C) the temporary is removed and an existing
    ``target`` is unchanged. `remove_leftovers` removes what a killed process leaves.
    """
    target = Path(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the folder: {error.strerror}", target.parent, code="unwritable") from error
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
    """Put files among ``targets`` that the block writes with `atomic_path` in place together, when it has succeeded.

    If the block fails, none is put in place and old files are unchanged. No file system renames several files in one
    step: a process killed between two renames leaves some new files and no old one of the rest, so that new and old
    files are never mixed.

    Raises:
        InputError: a file cannot be put in place.
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
    """Rename finished files over their targets, as described in `all_at_once`."""
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
    """Put a finished file or folder in place of ``target``; after any failure, one of the two exists.

    Folders are exchanged in one step if the system can do that (Linux, on most file systems). Otherwise a process
    killed between two renames leaves the old folder next to ``target``; `remove_leftovers` puts it back.
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
    """Exchange two folders in one step and return True; return False if the system cannot."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    if rename is None:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)


def _leftover_of(target: Path, kind: str = "partial") -> Path:
    """Return a name next to ``target`` for a path that `remove_leftovers` may remove."""
    return target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.{kind}")


def remove_leftovers(target: str | Path) -> None:
    """Remove what killed processes left next to ``target``; only for the holder of its lock.

    An old folder that was moved aside and never replaced is moved back.
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
    """Create a folder next to ``target`` for work on it, and remove it afterwards; after a kill it is a leftover."""
    folder = _leftover_of(Path(target))
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        _remove(folder)


def discard(folder: Path, target: Path) -> None:
    """Remove a folder next to ``target`` that is no longer needed; after a kill it is a leftover of ``target``."""
    leftover = _leftover_of(target)
    folder.replace(leftover)
    shutil.rmtree(leftover)


def remove_leftovers_in(folder: str | Path, *, deep: bool) -> None:
    """Remove what killed processes left of writing files in a folder; only for the holder of its lock.

    Args:
        folder: it need not exist.
        deep: anywhere in it; else files directly in it, since other processes may work in folders below.
    """
    for path in list(Path(folder).rglob(".*") if deep else Path(folder).glob(".*")):
        if _LEFTOVER.fullmatch(path.name) and (deep or path.is_file()):
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it exists."""
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
