"""Options of reading a grammar."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadOptions:
    """Options of reading a grammar, for any format."""

    start: str | None = None  #: start symbol, before that of the text
    normalise: bool = False  #: take numbers as weights, and divide them by the sum of each symbol's
    #: take unquoted names without rules as words even if other words are quoted, and note them with their lines in
    #: ``meta["unquoted"]``, as `truesource.grammar.diagnostics` expects
    lenient: bool = False
    cut_words: bool = False  #: make a word with white space several words, and an empty one none


AS_WRITTEN = ReadOptions()
