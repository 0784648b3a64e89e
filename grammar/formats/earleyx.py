"""EarleyX grammar text: ``VP->[V NP] : 0.6``, words as ``_word``."""

from __future__ import annotations

import math
import re
from pathlib import Path

from grammar.errors import InputError
from grammar.pcfg import PCFG

_LINE = re.compile(r"(?P<parent>\S+)->\[(?P<children>.*)\] : (?P<p>\S+)")


def looks_like_earleyx(text: str) -> bool:
    """Whether the first line that is not blank is an EarleyX rule."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return _LINE.fullmatch(first.strip()) is not None


def parse_earleyx(text: str, *, start: str = "ROOT", path: str | Path | None = None) -> PCFG:
    """Read EarleyX text; weights are normalised by symbol, as the format rounds them.

    The tool's own start is the child of its rule ``ROOT->[...]``.

    Raises:
        InputError: with the line at fault.
    """
    rules: list[tuple[str, tuple[str, ...], float]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise InputError(f"expecting a rule such as VP->[V NP] : 0.6, got {line[:60]!r}", path, number)
        try:
            weight = float(match["p"])
        except ValueError:
            weight = math.nan
        if not (math.isfinite(weight) and weight >= 0.0):
            raise InputError(f"{match['p']!r} is not a probability", path, number)
        if weight > 0.0:
            rules.append((match["parent"], tuple(match["children"].split()), weight))
    if not rules:
        raise InputError("the grammar has no rules", path)
    lefts = {parent for parent, _, _ in rules}
    words = {c[0] for _, c, _ in rules if len(c) == 1 and c[0].startswith("_") and c[0] not in lefts}
    flat = [(a, (c[0][1:],) if len(c) == 1 and c[0] in words else c, p) for a, c, p in rules]
    spelled = {word[1:] for word in words}
    clash = spelled & lefts
    lexical = {(a, c[0]) for (a, c, _), (_, raw, _) in zip(flat, rules, strict=True) if len(c) == 1 and raw[0] in words}
    if clash:
        both = {
            (a, c[0]) for (a, c, _), (_, raw, _) in zip(flat, rules, strict=True) if len(c) == 1 and raw[0] in lefts
        }
        if both & lexical:
            raise InputError(f"{sorted(both & lexical)[0][1]!r} is both a word and a symbol below one parent", path)
    try:
        return PCFG.from_rules(flat, start=start, words=lambda a, c: (a, c[0]) in lexical, normalise=True)
    except InputError as error:
        raise InputError(str(error), path) from error
