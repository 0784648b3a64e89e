"""Reading sentences from plain text: one tokenised sentence a line."""

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
    path = Path(path)
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("there is no such file", path) from None
    except UnicodeDecodeError:
        raise InputError("expecting UTF-8 text, one tokenised sentence a line", path) from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read: {getattr(error, 'strerror', None) or error}", path) from error
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise InputError("the file is empty; expecting one tokenised sentence a line", path)
    sentences = [line.split() for line in lines]
    if [] in sentences:
        raise InputError("an empty line; expecting one sentence a line", path, sentences.index([]) + 1)
    return sentences
