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
    changes no probability. Equal rules add up.

    Args:
        rules: one or more children each.
        start: the start symbol.
        normalise: divide each symbol's probabilities by their sum.
    """
    listed = list(rules)
    parents = {parent for parent, _, _ in listed}
    read = TextRules(start=start)
    read.rules = [
        (parent, [(child, "symbol" if child in parents else "word") for child in children], weight, 0)
        for parent, children, weight in listed
    ]
    return build(read, normalise=normalise)
