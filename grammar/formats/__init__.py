"""Grammar files: one module a format, and loading by content."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from grammar.errors import InputError
from grammar.pcfg import PCFG


def load_grammar(path: str | Path, *, normalise: bool = False) -> PCFG:
    """Read a grammar; what the file holds decides the format (``.npz``, EarleyX text, or our own and NLTK's text).

    With ``normalise``, the numbers of a text are weights, divided by the sum of each symbol's.

    Raises:
        InputError: the file is absent, damaged, or not a proper grammar.
    """
    from grammar.formats.earleyx import looks_like_earleyx, parse_earleyx
    from grammar.formats.npz import load_npz
    from grammar.formats.text import parse_text

    path = Path(path)
    try:
        content = path.read_bytes()
        if content[:2] == b"PK":
            return load_npz(path)
        text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read the grammar: {getattr(error, 'strerror', None) or error}", path) from error
    except UnicodeDecodeError as error:
        raise InputError("this is neither an .npz grammar nor UTF-8 text", path) from error
    return (
        parse_earleyx(text, path=path) if looks_like_earleyx(text) else parse_text(text, path=path, normalise=normalise)
    )


def save_grammar(pcfg: PCFG, path: str | Path, *, force: bool = False) -> None:
    """Write ``.npz`` for that suffix, else text, packed where the name ends in ``.gz``."""
    from grammar.files import atomic_path, refuse_existing, write_text

    if Path(path).suffix == ".npz":
        pcfg.save(path, force=force)
    elif Path(path).suffix == ".gz":
        refuse_existing(path, force)
        with atomic_path(path) as temporary:
            temporary.write_bytes(gzip.compress(pcfg.to_text().encode(), mtime=0))
    else:
        refuse_existing(path, force)
        write_text(path, pcfg.to_text())
