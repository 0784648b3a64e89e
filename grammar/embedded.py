"""The embedded defaults: the English grammar, and lists of stopwords."""

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
    """The embedded English grammar, ``language("english")``; see ``data/english/README.md``."""
    from truesource.grammar.pcfg import language

    return language("english")


def read_stopwords(path: Path | None = None, variant: Variant = "default") -> list[str]:
    """Words of a list, one a line; by default the embedded English ones.

    The English list is that of NLTK before February 2025 (179 words, which the ``paper`` variant takes as it is) and,
    as treebanks write clitics apart, ``n't 's 'm 're 've 'll 'd``.

    Raises:
        InputError: the file cannot be read, or holds no word.
    """
    if path is None:
        path = data_folder() / "stopwords" / ("english.txt" if variant == "default" else "english-179.txt")
    refuse_device(path)
    try:
        words = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("cannot read the stopwords; expecting UTF-8 text, one word a line", path) from error
    if not words:
        raise InputError("there is no word in this list of stopwords", path)
    return words
