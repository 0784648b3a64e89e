"""Read files with limits, compressed or not; their digests, and the refusal to overwrite them.

No file unpacks to more memory than its size on the disk warrants.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import json
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from truesource.grammar.support.errors import InputError

FIGURES = (".svg", ".pdf", ".png")  #: suffixes of figure files
LINE_LIMIT = 64 * 2**20  #: most bytes of a line of text
ALWAYS_ALLOWED = 256 * 2**20  #: bytes that any compressed file may unpack to
LARGEST_RATIO = 100  #: above `ALWAYS_ALLOWED`, most unpacked bytes for each byte on the disk
_CHUNK = 2**20
TO_UTF8 = "convert it, such as by `iconv -f LATIN1 -t UTF-8 FILE > NEW`"  #: remedy for other text
_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd"}
_GZIP = b"\x1f\x8b"


def refuse_existing(path: str | Path, force: bool) -> None:
    """Refuse to overwrite.

    Raises:
        InputError: ``path`` exists (a folder: and is not empty) and ``force`` is false.
    """
    path = Path(path)
    occupied = path.exists() and not (path.is_dir() and not any(path.iterdir()))
    if occupied and not force:
        raise InputError(f"will not overwrite {path} without --force", code="exists")


def refuse_occupied(path: Path, force: bool, what: str, mark: str) -> None:
    """Refuse a folder that must not be replaced: not empty without ``force``, or of another kind.

    Args:
        path: path of the folder.
        force: replace a folder of this kind.
        what: the kind, in a word.
        mark: name of a file that every such folder has.

    Raises:
        InputError: it must not be replaced.
    """
    refuse_existing(path, force)
    ours = path.is_dir() and not path.is_symlink() and ((path / mark).is_file() or not any(path.iterdir()))
    if path.exists() and not ours:
        raise InputError(f"this is not a {what}, so it will not be replaced; choose another path", path, code="exists")


def digest_file(path: str | Path) -> str:
    """Return the SHA-256 of a file's bytes, hexadecimal.

    Raises:
        InputError: it is a device.
    """
    refuse_device(path)
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value in canonical form, hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def round_floats(value: Any) -> Any:
    """Return a JSON value with floats rounded to 12 significant digits, equal for any number of threads."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: round_floats(inner) for key, inner in value.items()}
    return [round_floats(inner) for inner in value] if isinstance(value, list | tuple) else value


def check_unpacked_size(unpacked: int, path: str | Path) -> None:
    """Refuse a file whose content takes far more memory than the file takes on the disk.

    Args:
        unpacked: bytes of the content in memory, as far as known.
        path: the file.

    Raises:
        InputError: it is more than `ALWAYS_ALLOWED`, and more than `LARGEST_RATIO` times the size of the file.
    """
    if unpacked <= ALWAYS_ALLOWED:
        return
    size = Path(path).stat().st_size
    if unpacked > LARGEST_RATIO * size:
        raise InputError(
            f"the file has {size:,} bytes and unpacks to {unpacked:,} or more, over {LARGEST_RATIO} times as many;"
            " unpack or rewrite it with another tool if it is genuine",
            path,
        )


def expand_user(path: str | Path) -> Path:
    """Return a path with ``~`` or ``~name`` in front replaced by a home folder; unchanged if there is no such user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 (pathlib raises if there is no such user)


def real_path(path: str | Path) -> Path:
    """Return the absolute path with links resolved; a circular link is unchanged (`pathlib` raises an error)."""
    return Path(os.path.realpath(path))


def refuse_device(path: str | Path) -> None:
    """Refuse a path that is neither a file nor a pipe: a device such as ``/dev/zero`` may never end.

    A path that does not exist passes, and so does a folder: the reader reports what it expects there.

    Raises:
        InputError: it is a device or a socket (code ``unreadable``).
    """
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        kind = "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise InputError(f"this is {kind}, not a file; use a file or a pipe", path, code="unreadable")


def read_bytes(path: str | Path, *, limit: int | None = None, line_limit: int | None = LINE_LIMIT) -> bytes:
    """Return the content of a file, uncompressed if it is a gzip file (by its name or its first bytes).

    Args:
        path: the file.
        limit: largest size of the content in bytes; None: any, but see `check_unpacked_size`.
        line_limit: largest size of a line in bytes; None: any, for content that is not text.

    Raises:
        InputError: the file is missing, is a device, cannot be read, is a damaged gzip file, or exceeds a limit.
    """
    chunks: list[bytes] = []
    size = 0
    for chunk in read_chunks(Path(path), line_limit):
        size += len(chunk)
        if limit is not None and size > limit:
            raise InputError(f"the file is larger than {limit:,} bytes, the largest size of its kind", path)
        chunks.append(chunk)
    return b"".join(chunks)


def read_text(path: str | Path, *, not_text: str) -> str:
    """Return the content of a UTF-8 file, unpacked if it is a gzip file, without a byte order mark.

    Args:
        path: the file.
        not_text: message for a file that is not UTF-8.

    Raises:
        InputError: the file is not UTF-8, or as for `read_bytes`.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(not_text, path, code="damaged") from error


def read_lines(path: str | Path) -> Iterator[bytes]:
    """Yield the lines of a file, unpacked if it is a gzip file, one after the other; without their line ends.

    Raises:
        InputError: as `read_bytes`, when the position is reached.
    """
    rest: list[bytes] = []  # beginning of a line that continues in the next chunk
    for chunk in read_chunks(Path(path), LINE_LIMIT):
        first, *others = chunk.split(b"\n")
        rest.append(first)
        if others:
            yield b"".join(rest)
            yield from others[:-1]
            rest = [others[-1]]
    last = b"".join(rest)
    if last:
        yield last


def read_text_lines(path: str | Path) -> Iterator[str]:
    """Read UTF-8 text as `read_lines` reads bytes, without a byte order mark.

    Raises:
        InputError: a line is not UTF-8 (with its number), or as `read_lines`.
    """
    for number, raw in enumerate(read_lines(path), 1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"not UTF-8 text ({error.reason}); {_remedy(raw) if number == 1 else TO_UTF8}",
                path,
                number,
                code="damaged",
            ) from error


def _remedy(beginning: bytes) -> str:
    """Return the remedy for a file that is not UTF-8, by its first bytes."""
    packed = next((name for mark, name in _PACKED.items() if beginning.startswith(mark)), None)
    if packed is not None:
        return f"it is compressed by {packed}; uncompress it, or use gzip"
    utf16 = beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return TO_UTF8.replace("LATIN1", "UTF-16") if utf16 else TO_UTF8


def read_chunks(path: Path, line_limit: int | None = LINE_LIMIT) -> Iterator[bytes]:
    """Yield the content of a file piece by piece, unpacked if it is a gzip file.

    Args:
        path: the file.
        line_limit: largest size of a line in bytes; None: any.

    Raises:
        InputError: as `read_bytes`, when the position is reached.
    """
    refuse_device(path)
    try:
        with path.open("rb") as raw:
            packed = path.suffix == ".gz" or raw.peek(2)[:2] == _GZIP
            stream = gzip.GzipFile(fileobj=raw, mode="rb") if packed else raw
            size, open_line = 0, 0
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if packed:
                    check_unpacked_size(size, path)
                end = chunk.rfind(b"\n")
                open_line = open_line + len(chunk) if end < 0 else len(chunk) - end - 1
                if line_limit is not None and open_line > line_limit:
                    raise InputError(f"a line is longer than {line_limit:,} bytes; break it up", path)
                yield chunk
    except FileNotFoundError as error:
        raise InputError("there is no such file", path, code="missing") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"the gzip file is damaged or cut short ({error})", path, code="damaged") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"cannot read the file: {reason}", path, code="unreadable") from error


def data_folder() -> Path:
    """Return the folder ``data`` next to the packages, in a checkout or an installed wheel.

    Raises:
        InputError: it is missing.
    """
    folder = Path(__file__).resolve().parents[2] / "data"
    if not (folder / "demo.yaml").is_file():
        raise InputError("the embedded data are missing; install truesource again", folder)
    return folder
