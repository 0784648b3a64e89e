"""Grammar files: one module a format, and loading by content."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

from truesource.grammar.errors import InputError
from truesource.grammar.rules import GrammarRules
from truesource.grammar.unpacking import read_text

FORMATS = ("npz", "text", "nltk", "berkeley", "earleyx")


def load_rules(
    path: str | Path,
    *,
    normalise: bool = False,
    format: str | None = None,  # noqa: A002
    start: str | None = None,
    lenient: bool = False,
) -> GrammarRules:
    """Read a grammar; what the file holds decides the format, unless it is given.

    Args:
        path: a file, packed (``.gz``) or not; for a Berkeley pair either file, or what their names have in common.
        normalise: take the numbers of a text as weights, divided by the sum of each symbol's. Berkeley and EarleyX
            text is always read so, as their files do not sum to one.
        format: one of `FORMATS`.
        start: start symbol, in place of the file's own.
        lenient: as for `truesource.grammar.formats.text.parse_text`, so that a mistake can be shown beside others.

    Raises:
        InputError: the file is absent, damaged, or not a proper grammar.
    """
    from truesource.grammar.formats.berkeley import load_berkeley
    from truesource.grammar.formats.earleyx import parse_earleyx
    from truesource.grammar.formats.nltk import parse_nltk
    from truesource.grammar.formats.npz import load_npz
    from truesource.grammar.formats.text import parse_text

    path = Path(path)
    if format is not None:
        check_format(format)
    name, text = _found(path, format)
    if name == "berkeley":
        return load_berkeley(path, start=start)
    if name == "npz":
        return _started(load_npz(path), start, path)
    if name == "earleyx":
        return parse_earleyx(text, start=start, path=path)
    parse = parse_nltk if name == "nltk" else parse_text
    return parse(text, start=start, normalise=normalise, path=path, lenient=lenient)


def check_format(name: str) -> None:
    """Refuse a name that is no format.

    Raises:
        InputError: it is not one of `FORMATS`.
    """
    if name not in FORMATS:
        raise InputError(f"there is no grammar format {name!r}; choose one of {', '.join(FORMATS)}")


def _found(path: Path, known: str | None) -> tuple[str, str]:
    """The format of a file, by its first lines unless it is known; and the text, of formats that are one text."""
    from truesource.grammar.formats.berkeley import looks_like_berkeley, source_files
    from truesource.grammar.formats.earleyx import looks_like_earleyx
    from truesource.grammar.formats.nltk import looks_like_nltk

    common_prefix = not path.exists() and None not in source_files(path)[:2]
    if known in ("berkeley", "npz") or (known is None and common_prefix):
        return known or "berkeley", ""
    if known is None and _first_bytes(path) == b"PK":
        return "npz", ""
    text = read_text(path, not_text="this is neither an .npz grammar nor UTF-8 text")
    if known is not None:
        return known, text
    first = next((line for line in text.split("\n", 20) if line.strip()), "")
    if looks_like_berkeley(first, path):
        return "berkeley", ""
    if looks_like_earleyx(first):
        return "earleyx", text
    return ("nltk" if looks_like_nltk(first) else "text"), text


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(2)
    except OSError:
        return b""  # reading the text says why


def _started(pcfg: GrammarRules, start: str | None, path: Path) -> GrammarRules:
    if start is None:
        return pcfg
    if start not in pcfg.symbol_ids:
        raise InputError(f"the start symbol {start!r} has no rules; name another", path)
    return replace(pcfg, start=pcfg.symbol_ids[start])


def target_format(path: str | Path) -> str:
    """The format that a file's name asks for: ``npz`` for that suffix, else ``text``."""
    return "npz" if Path(path).suffix == ".npz" else "text"


def target_files(path: str | Path, format: str | None = None) -> list[Path]:  # noqa: A002
    """The files that `save_grammar` writes: one, or a Berkeley pair."""
    from truesource.grammar.formats import berkeley

    return berkeley.target_files(path) if format == "berkeley" else [Path(path)]


def save_grammar(
    pcfg: GrammarRules,
    path: str | Path,
    *,
    force: bool = False,
    format: str | None = None,  # noqa: A002
) -> None:
    """Write a grammar: ``.npz`` for that suffix, else text, unless the format is given; text is packed for ``.gz``.

    Raises:
        InputError: a file exists and ``force`` is false, the format cannot hold the grammar, or it is unknown.
    """
    from truesource.grammar.files import atomic_path, refuse_existing, write_text
    from truesource.grammar.formats.shared.berkeley_writer import save_berkeley
    from truesource.grammar.formats.earleyx import format_earleyx
    from truesource.grammar.formats.nltk import format_nltk
    from truesource.grammar.formats.npz import save_npz
    from truesource.grammar.formats.text import format_text

    name = format or target_format(path)
    check_format(name)
    if name == "npz":
        save_npz(pcfg, path, force=force)
        return
    if name == "berkeley":
        save_berkeley(pcfg, path, force=force)
        return
    refuse_existing(path, force)
    text = {"text": format_text, "nltk": format_nltk, "earleyx": format_earleyx}[name](pcfg)
    if Path(path).suffix == ".gz":
        with atomic_path(path) as temporary:
            temporary.write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        write_text(path, text)
