"""The native grammar file: one versioned ``.npz`` without pickle."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal, NotRequired, cast

import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.formats import GrammarFormat, GrammarSource
from truesource.grammar.process import needs_rules, read_process
from truesource.grammar.read_options import ReadOptions
from truesource.grammar.rules import GrammarRules, digest_rules
from truesource.grammar.support.archives import BYTES, FLOATS, integers, read_arrays
from truesource.grammar.support.atomic_files import atomic_path
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, Count, Positive, decode_record

VERSION = 1
ARRAYS = {
    "binary": integers(3),
    "binary_logp": FLOATS,
    "unary": integers(2),
    "unary_logp": FLOATS,
    "lexical": integers(2),
    "lexical_logp": FLOATS,
}
_WHAT, _REMEDY = "this .npz", "use a truesource grammar, or regenerate it"


@with_config(STRICT)
class LanguageOfGrammar(TypedDict):
    """The language that a grammar defines or was made from; see `truesource.grammar.languages.load_language`."""

    name: str
    reference: str
    digest: str
    citation: str


@with_config(STRICT)
class Meta(TypedDict):
    """Record of how a grammar was made, as far as this package reads it."""

    language: NotRequired[LanguageOfGrammar]


@with_config(STRICT)
class Header(TypedDict):
    """Content of the file in addition to the arrays, as JSON."""

    format: Literal["truesource-pcfg"]
    version: Positive
    symbols: tuple[str, ...]
    terminals: tuple[str, ...]
    labels: tuple[str, ...]
    start: Count
    meta: Meta
    digest: str


@with_config(STRICT)
class _Versioned(TypedDict):
    """Keys that headers of all versions have."""

    version: Positive


def save_npz(pcfg: GrammarRules, path: str | Path) -> None:
    """Write a grammar atomically; equal grammars give equal bytes.

    Raises:
        InputError: the file cannot be written.
    """
    head: Header = {
        "format": "truesource-pcfg",
        "version": VERSION,
        "symbols": pcfg.symbols,
        "terminals": pcfg.vocabulary,
        "labels": pcfg.labels,
        "start": pcfg.start,
        "meta": cast("Meta", dict(pcfg.meta)),
        "digest": pcfg.digest,
    }
    text = json.dumps(head, ensure_ascii=False, allow_nan=False).encode()
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        arrays = {name: getattr(pcfg, name) for name in ARRAYS}
        np.savez_compressed(stream, head=np.frombuffer(text, dtype=np.uint8), **arrays)


def load_npz(path: str | Path) -> GrammarRules:
    """Read a file of `save_npz`, and check its digest.

    Raises:
        InputError: the file is damaged, from a newer version, or not a grammar.
    """
    arrays = read_arrays(path, {"head": BYTES, **ARRAYS}, what=_WHAT, remedy=_REMEDY)
    content = arrays.pop("head").tobytes()
    version = decode_record(content, _Versioned, what=_WHAT, remedy=_REMEDY, path=path, embedded=True)["version"]
    if version > VERSION:
        raise InputError(f"its format version is {version}, newer than {VERSION}; update truesource", path)
    head = decode_record(content, Header, what=_WHAT, remedy=_REMEDY, path=path, embedded=True)
    try:
        pcfg = GrammarRules(
            symbols=head["symbols"],
            vocabulary=head["terminals"],
            start=head["start"],
            labels=head["labels"],
            meta=dict(head["meta"]),
            **arrays,
        )
    except InputError as error:
        raise InputError(str(error), path) from error
    names = [head["symbols"], head["terminals"], head["start"], head["labels"]]
    stored = [(arrays[kind], arrays[f"{kind}_logp"]) for kind in ("binary", "unary", "lexical")]
    if digest_rules(names, stored) != head["digest"]:  # digest of the stored arrays: reading may divide rounded rules
        raise InputError("the content does not match its stored digest: it was damaged or edited; regenerate it", path)
    return pcfg


def _read_source(source: GrammarSource, options: ReadOptions) -> GrammarRules:
    process = read_process(source.path)
    if process is not None:
        raise needs_rules(process["reference"], source.path)
    pcfg, start = load_npz(source.path), options.start
    if start is None:
        return pcfg
    if start not in pcfg.symbol_ids:
        raise InputError(f"the start symbol {start!r} has no rules; choose another", source.path)
    return replace(pcfg, start=pcfg.symbol_ids[start])


FORMAT = GrammarFormat(
    read=_read_source, write=save_npz, sniff=lambda source: source.first_bytes.startswith(b"PK"), extensions=(".npz",)
)
