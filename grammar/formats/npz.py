"""The native grammar file: one versioned ``.npz`` without pickle."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from grammar.errors import InputError
from grammar.files import atomic_path, refuse_existing
from grammar.pcfg import PCFG

VERSION = 1
#: what reading a damaged archive raises; the last two where a bit of a header says "encrypted" or "another method"
UNREADABLE = (
    OSError,
    EOFError,
    KeyError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
    RuntimeError,
    NotImplementedError,
)
ARRAYS = ("binary", "binary_logp", "unary", "unary_logp", "lexical", "lexical_logp")


def save_npz(pcfg: PCFG, path: str | Path, *, force: bool = False) -> None:
    """Write atomically; equal grammars give equal bytes.

    Raises:
        InputError: the file exists and ``force`` is false, or it cannot be written.
    """
    refuse_existing(path, force)
    head = {
        "format": "truesource-pcfg",
        "version": VERSION,
        "symbols": pcfg.symbols,
        "terminals": pcfg.terminals,
        "labels": pcfg.labels,
        "start": pcfg.start,
        "meta": dict(pcfg.meta),
        "digest": pcfg.digest,
    }
    text = json.dumps(head, ensure_ascii=False, allow_nan=False).encode()
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        arrays: dict[str, Any] = {name: getattr(pcfg, name) for name in ARRAYS}
        np.savez_compressed(stream, head=np.frombuffer(text, dtype=np.uint8), **arrays)


def load_npz(path: str | Path) -> PCFG:
    """Read what `save_npz` wrote, and check its digest.

    Raises:
        InputError: the file is damaged, from a newer version, or not a grammar.
    """
    damaged = "this .npz is damaged or is not a truesource grammar; make it again"
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            head = json.loads(archive["head"].tobytes())
            arrays = {name: archive[name] for name in ARRAYS}
    except UNREADABLE as error:
        raise InputError(damaged, path) from error
    if not isinstance(head, dict) or head.get("format") != "truesource-pcfg":
        raise InputError("this .npz is not a truesource grammar", path)
    try:
        if head["version"] > VERSION:
            raise InputError(f"its format version is {head['version']}, newer than {VERSION}; update truesource")
        pcfg = PCFG(
            symbols=tuple(head["symbols"]),
            terminals=tuple(head["terminals"]),
            start=head["start"],
            labels=tuple(head["labels"]),
            meta=head["meta"],
            **arrays,
        )
        if pcfg.digest != head["digest"]:
            raise InputError("the content does not match the digest stored with it; the file was damaged or edited")
    except InputError as error:
        raise InputError(str(error), path) from error
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(damaged, path) from error
    return pcfg
