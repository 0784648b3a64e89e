"""Names of the files of a Berkeley grammar: ``NAME.grammar``, ``NAME.lexicon`` and perhaps ``NAME.splits``."""

from __future__ import annotations

import re
from pathlib import Path

from truesource.grammar.rules import GrammarRules

START = "ROOT_0"
_SUFFIX = re.compile(r"(?P<stem>.*?)(?:\.(?P<part>grammar|lexicon|splits))?(?P<packed>\.gz)?", re.DOTALL)


def split_name(path: Path) -> tuple[str, str, str]:
    """Common prefix, which file of the set (or nothing), and ``.gz`` or nothing."""
    match = _SUFFIX.fullmatch(str(path))
    assert match is not None
    return match["stem"], match["part"] or "", match["packed"] or ""


def source_files(path: str | Path) -> tuple[Path | None, Path | None, Path | None]:
    """Grammar, lexicon and splits that belong to one of them or to their common prefix; None where absent."""
    stem, _, packed = split_name(Path(path))
    found: list[Path | None] = []
    for part in ("grammar", "lexicon", "splits"):
        both = [Path(f"{stem}.{part}{suffix}") for suffix in dict.fromkeys((packed, "", ".gz"))]
        found.append(next((file for file in both if file.is_file()), None))
    return found[0], found[1], found[2]


def target_files(path: str | Path, pcfg: GrammarRules | None = None) -> list[Path]:
    """The files to write: grammar and lexicon, and splits where the grammar carries them."""
    stem, _, packed = split_name(Path(path))
    parts = ["grammar", "lexicon"] + (["splits"] if pcfg is not None and pcfg.meta.get("splits") else [])
    return [Path(f"{stem}.{part}{packed}") for part in parts]
