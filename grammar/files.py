"""Writing files so that a failure leaves the old one, and reading what was written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grammar.errors import InputError


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``target``; rename it over ``target`` only if the block succeeds.

    Works for a file or a folder. When the block fails (full disk, Ctrl-C) the temporary is removed and
    an existing ``target`` stays as it was.
    """
    target = Path(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder: {error.strerror}", target.parent) from error
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}.partial")
    try:
        yield temporary
        if temporary.is_dir() and target.is_dir():
            retired = target.with_name(f".{target.name}.{os.getpid()}.retired")
            target.replace(retired)
            try:
                temporary.replace(target)
            except BaseException:
                retired.replace(target)
                raise
            shutil.rmtree(retired)
        else:
            temporary.replace(target)
    except OSError as error:
        raise InputError(
            f"cannot write: {error.strerror or error}; the old file, if any, is untouched", target
        ) from error
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)


def write_text(target: str | Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(target: str | Path, value: Any) -> None:
    """Write JSON atomically; NaN and infinities are refused (`ValueError`)."""
    write_text(target, json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def write_json_lines(target: str | Path, values: Iterable[Any]) -> None:
    """Write a JSON value a line, atomically; NaN and infinities are refused (`ValueError`)."""
    lines = (json.dumps(value, allow_nan=False, ensure_ascii=False) for value in values)
    write_text(target, "".join(f"{line}\n" for line in lines))


def refuse_existing(path: str | Path, force: bool) -> None:
    """Stop before overwriting.

    Raises:
        InputError: ``path`` exists (a folder: and is not empty) and ``force`` is false.
    """
    path = Path(path)
    occupied = path.exists() and not (path.is_dir() and not any(path.iterdir()))
    if occupied and not force:
        raise InputError(f"will not overwrite {path} without --force")


def digest_file(path: str | Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_json(value: Any) -> str:
    """SHA-256 of a JSON value in canonical form, hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def round_floats(value: Any) -> Any:
    """A JSON value with its floats rounded to 12 significant digits, where the number of threads does not show."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: round_floats(inner) for key, inner in value.items()}
    return [round_floats(inner) for inner in value] if isinstance(value, list | tuple) else value
