"""Options for reading a grammar."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a grammar in any format."""

    start: str | None = None  #: start symbol; overrides the start symbol in the text
    normalise: bool = False  #: read numbers as weights, divided by the sum of each symbol's weights
    #: read unquoted names without rules as words even if other words are quoted, and list them with their lines in
    #: ``meta["unquoted"]``, as `truesource.grammar.diagnostics` expects
    lenient: bool = False
    cut_words: bool = False  #: split words at white space, and drop empty ones


AS_WRITTEN = ReadOptions()
