"""Embedded defaults: the English grammar and lists of stopwords."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder, refuse_device

if TYPE_CHECKING:
    from truesource.grammar.inference.exact import Variant
    from truesource.grammar.pcfg import PCFG


@cache
def english() -> PCFG:
    """Return the embedded English grammar, ``language("english")``; see ``data/english/README.md``."""
    from truesource.grammar.pcfg import language

    return language("english")


def read_stopwords(path: Path | None = None, variant: Variant = "default") -> list[str]:
    """Return the words of a list, one a line; by default the embedded English stopwords.

    The English list is the one in NLTK before February 2025 (179 words; the ``paper`` variant uses it unchanged) and,
    as treebanks split off clitics, ``n't 's 'm 're 've 'll 'd``.

    Raises:
        InputError: the file cannot be read, or holds no word.
    """
    if path is None:
        path = data_folder() / "stopwords" / ("english.txt" if variant == "default" else "english-179.txt")
    refuse_device(path)
    try:
        words = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("cannot read the stopwords; use UTF-8 text with one word a line", path) from error
    if not words:
        raise InputError("this list of stopwords has no words; write one word a line", path)
    return words
