"""Reading files that may be packed, with bounds: nothing unpacks to more memory than its size on the disk warrants."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from truesource.grammar.support.errors import InputError

LINE_LIMIT = 64 * 2**20  #: bytes of a line of text
ALWAYS_ALLOWED = 256 * 2**20  #: bytes that any packed file may unpack to
LARGEST_RATIO = 100  #: above `ALWAYS_ALLOWED`, unpacked bytes for each byte on the disk
_CHUNK = 2**20
_GZIP = b"\x1f\x8b"


def check_unpacked_size(unpacked: int, path: str | Path) -> None:
    """Refuse a file whose content takes far more memory than the file takes on the disk.

    Args:
        unpacked: bytes that the content takes in memory, as far as is known.
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


def read_bytes(path: str | Path, *, limit: int | None = None, line_limit: int | None = LINE_LIMIT) -> bytes:
    """The content of a file, unpacked if it is a gzip file (by its name or its first bytes).

    Args:
        path: the file.
        limit: largest size of the content in bytes; None: any, but see `check_unpacked_size`.
        line_limit: largest size of a line in bytes; None: any, for content that is not text.

    Raises:
        InputError: the file is missing, cannot be read, is a damaged gzip file, or exceeds a limit.
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
    """The content of a UTF-8 file, unpacked if it is a gzip file, without a byte order mark.

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
    """The lines of a file, unpacked if it is a gzip file, one after the other; without their line ends.

    Raises:
        InputError: as `read_bytes`, once the place is reached.
    """
    rest: list[bytes] = []  # the beginning of a line that goes on in the next chunk
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
    """As `read_lines`, of UTF-8 text, without a byte order mark.

    Raises:
        InputError: a line is not UTF-8 (with its number), or as `read_lines`.
    """
    for number, raw in enumerate(read_lines(path), 1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"not UTF-8 text ({error.reason}); convert the file first", path, number, code="damaged"
            ) from error


def read_chunks(path: Path, line_limit: int | None = LINE_LIMIT) -> Iterator[bytes]:
    """Yield the content of a file piece by piece, unpacked if it is a gzip file.

    Args:
        path: the file.
        line_limit: largest size of a line in bytes; None: any.

    Raises:
        InputError: as `read_bytes`, once the place is reached.
    """
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
        raise InputError(f"cannot read the file: {_reason(error)}", path, code="unreadable") from error


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)
