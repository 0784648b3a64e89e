"""Reading plain text: one tokenised sentence, or one document, a line."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from grammar.errors import InputError


def read_sentences(path: str | Path) -> list[list[str]]:
    """Read one sentence a line, tokens separated by white space; ``.gz`` is unpacked.

    Raises:
        InputError: the file is missing, is not UTF-8 text, is empty, or has an empty line (line given).
    """
    return [line.split() for line in _read_lines(Path(path), "sentence", "tokenised sentence")]


def read_documents(path: str | Path) -> list[str]:
    """Read one document a line, as it stands there, without the end of the line; ``.gz`` is unpacked.

    Raises:
        InputError: the file is missing, is not UTF-8 text, is empty, or has an empty line (line given).
    """
    return [line.removesuffix("\r") for line in _read_lines(Path(path), "document", "document")]


def _read_lines(path: Path, what: str, long: str) -> list[str]:
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such file", path) from None
    except UnicodeDecodeError:
        raise InputError(f"expecting UTF-8 text, one {long} a line", path) from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read: {getattr(error, 'strerror', None) or error}", path) from error
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise InputError(f"the file is empty; expecting one {long} a line", path)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise InputError(f"an empty line; expecting one {what} a line", path, number)
    return lines
