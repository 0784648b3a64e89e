"""Rules after their weights: ``1 S NP VP`` (Eisner), ``0.5 S -> NP VP`` (Stolcke), ``2 1 S --> NP VP`` (Johnson).

A name without rules is a word; quotes around a whole name make it a word. ``#`` starts a comment, at the start of a
line or after a rule. A second number before an arrow is the pseudo-count of a prior and has no effect on the language.
Weights are divided by each symbol's sum.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from truesource.grammar.formats import GrammarFormat, text_writer
from truesource.grammar.formats.text import logical_lines
from truesource.grammar.read_options import AS_WRITTEN, ReadOptions
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.errors import InputError
from truesource.grammar.text_rules import EMPTY_SIGNS, TextRules, build, top_symbol

START = "ROOT"
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_ARROWS = ("->", "-->", "\u2192")
_ARROW = "|".join(_ARROWS)
_LINE = re.compile(
    rf"(?P<weight>{_NUMBER})\s+(?:(?:{_NUMBER}\s+)?(?P<parent>\S+)\s+(?:{_ARROW})(?:\s+|$)|(?P<first>(?!(?:{_ARROW})\s)\S+)(?:\s+|$))"
    r"(?P<children>.*)"
)
_QUOTED = re.compile(r"'[^']+'|\"[^\"]+\"")


def parse_weight_first(text: str, options: ReadOptions = AS_WRITTEN, path: str | Path | None = None) -> GrammarRules:
    """Read rules with their weight in front.

    Args:
        text: the rules.
        options: how to read them. The default start symbol is ``ROOT``, else the only symbol below no other.
        path: file named in errors.

    Raises:
        InputError: with the line at fault.
    """
    read = TextRules()
    for number, line in logical_lines(text):
        match = _LINE.fullmatch(line)
        if match is None or (match["first"] or "").startswith("#"):
            raise InputError(f"expecting a weight and a rule such as 2 S NP VP, got {line[:60]!r}", path, number)
        weight = float(match["weight"])
        if not np.isfinite(weight):
            raise InputError(f"{match['weight'][:40]!r} is too large; scale the weights down", path, number)
        children = re.split(r"\s#", f" {match['children']}", maxsplit=1)[0].split()
        if not children and match["parent"] is None:
            raise InputError(f"the rule {line[:60]!r} has no children; write \u03b5 for an empty rule", path, number)
        if weight > 0.0:
            pairs = [(name[1:-1], "word") if _QUOTED.fullmatch(name) else (name, "open") for name in children]
            read.rules.append((match["parent"] or match["first"], pairs, weight, number))
    if not read.rules:
        raise InputError("the grammar has no rules", path)
    below = ((parent, [name for name, kind in children if kind == "open"]) for parent, children, *_ in read.rules)
    read.start = options.start or top_symbol(below, START, path)
    return build(read, replace(options, normalise=True), path)


def format_weight_first(pcfg: GrammarRules) -> str:
    """Return rules in Eisner's notation, the start symbol's first, which `parse_weight_first` reads back.

    Raises:
        InputError: a name cannot be written in it.
    """
    for name in pcfg.symbols:
        if name.split() != [name] or name.startswith("#") or name in _ARROWS or _QUOTED.fullmatch(name):
            raise InputError(f"rules with weights in front cannot hold the symbol {name!r}; rename it")
    if START in pcfg.symbols and pcfg.symbols[pcfg.start] != START:
        raise InputError(f"these rules start from {START}, which is another symbol of this grammar; rename it")
    symbols, words = pcfg.symbols, _written_words(pcfg)
    lines: list[tuple[int, str]] = []
    for rules, logp, names in (
        (pcfg.binary, pcfg.binary_logp, symbols),
        (pcfg.unary, pcfg.unary_logp, symbols),
        (pcfg.lexical, pcfg.lexical_logp, words),
    ):
        for rule, p in zip(rules.tolist(), np.exp(logp).tolist(), strict=True):
            lines.append((rule[0], f"{p!r}\t{symbols[rule[0]]}\t{' '.join(names[i] for i in rule[1:])}"))
    lines.sort(key=lambda pair: (pair[0] != pcfg.start, pair[0]))
    head = [] if START in symbols else [f"1\t{START}\t{symbols[pcfg.start]}"]
    return "\n".join([*head, *(line for _, line in lines)]) + "\n"


def _written_words(pcfg: GrammarRules) -> list[str]:
    """Return the words as written in rules: all in quotes if one needs them.

    Raises:
        InputError: a word needs quotes and has both kinds in it, or has white space.
    """
    words = pcfg.vocabulary
    plain = (
        not (word in pcfg.symbol_ids or word in EMPTY_SIGNS or word.startswith("#") or _QUOTED.fullmatch(word))
        for word in words
    )
    if all(plain):
        result = list(words)
    else:
        quotes = {word: next((q for q in "'\"" if q not in word), None) for word in words}
        if (wrong := next((word for word, quote in quotes.items() if quote is None), None)) is not None:
            raise InputError(f"rules with weights in front cannot hold the word {wrong!r}: it has both kinds of quotes")
        result = [f"{quote}{word}{quote}" for word, quote in quotes.items()]
    for word in result:
        if word.split() != [word] or word.endswith("\\"):
            raise InputError(f"rules with weights in front cannot hold the word {word!r}: white space or \\ at its end")
    return result


FORMAT = GrammarFormat(
    read=lambda source, options: parse_weight_first(source.text, options, source.path),
    write=text_writer(format_weight_first),
    sniff=lambda source: _LINE.fullmatch(source.first_rule) is not None,
)
