"""Grammars from rules of any number of children."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from truesource.grammar.formats.text import TextRules, build
from truesource.grammar.rules import GrammarRules


def grammar_of(
    rules: Iterable[tuple[str, Sequence[str], float]], *, start: str, normalise: bool = False
) -> GrammarRules:
    """The grammar of (parent, children, probability) triples; a child that is no parent is a word.

    Longer rules become chains of binary rules, and a word beside other children gets a symbol of its own, which
    changes no probability. Equal rules add up. Rules of probability 0 are left out, and so are symbols that derivations
    from the start do not reach.

    Args:
        rules: one or more children each.
        start: the start symbol.
        normalise: divide each symbol's probabilities by their sum.
    """
    listed = [rule for rule in rules if rule[2] != 0.0]
    below: dict[str, list[str]] = {}
    for parent, children, _ in listed:
        below.setdefault(parent, []).extend(children)
    reached, waiting = {start}, [start]
    while waiting:
        new = {child for child in below[waiting.pop()] if child in below and child not in reached}
        reached |= new
        waiting += new
    read = TextRules(start=start)
    read.rules = [
        (parent, [(child, "symbol" if child in below else "word") for child in children], weight, 0)
        for parent, children, weight in listed
        if parent in reached
    ]
    return build(read, normalise=normalise)
