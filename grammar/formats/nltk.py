"""NLTK's grammar text, as ``nltk.PCFG.fromstring`` reads it: ``S -> NP VP [0.9] | 'go' [0.1]``.

Quotes mark a word, and have no escapes; any other name is a symbol. NLTK's symbols are made of letters, digits and ``_
/ ^ < > -`` (not the last four in front), so the export writes others with codes, such as ``^24^`` for ``$``, and keeps
the real names and the labels in a comment that the import reads.

`from_nltk` and `to_nltk` convert grammars in memory, where any name is allowed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.formats import GrammarFormat, text_writer
from truesource.grammar.formats.text import NLTK_HEADING, NLTK_TOLERANCE, add_alternatives, logical_lines, parse_text
from truesource.grammar.read_options import AS_WRITTEN, ReadOptions
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, decode_record
from truesource.grammar.text_rules import EMPTY_SIGNS, TextRules, build

if TYPE_CHECKING:
    import nltk

HEAD = "# NLTK PCFG written by truesource "
_TOKEN = re.compile(
    r"""\s*(?:
      '(?P<single>[^']*)' | "(?P<double>[^"]*)" | (?P<arrow>->)(?=\s) | (?P<bar>\|)
      | \[(?P<boxed>[^\]\s]+)\] | (?P<symbol>[\w/][\w/^<>-]*)(?=[\s'"|\[]|$)
      | (?P<other>[^\s'"|\[]+|\S)
    )""",
    re.VERBOSE,
)
_SYMBOL = re.compile(r"[\w/][\w/^<>-]*")


def parse_nltk(text: str, options: ReadOptions = AS_WRITTEN, path: str | Path | None = None) -> GrammarRules:
    """Read NLTK text, ``str(grammar)`` of an ``nltk.PCFG`` too; arguments and errors as for `parse_text`."""
    lines = list(logical_lines(text))
    if lines and NLTK_HEADING.fullmatch(lines[0][1]):
        return parse_text(text, options, path)
    written, labels = _head(text.split("\n", 1)[0], path)
    read = TextRules(tolerance=NLTK_TOLERANCE)
    for number, line in lines:
        if line.startswith("%"):
            words = line.split()
            if words[0] != "%start" or len(words) != 2:
                raise InputError(f"expecting %start and one symbol, got {line[:60]!r}", path, number)
            read.start = written.get(words[1], words[1])
            continue
        tokens = [_token(match) for match in _TOKEN.finditer(line)]
        tokens = [(written.get(name, name), kind) if kind == "symbol" else (name, kind) for name, kind in tokens]
        if len(tokens) < 2 or tokens[1][1] != "arrow" or tokens[0][1] != "symbol":
            raise InputError(f"expecting a rule such as S -> NP VP [0.9], got {line[:60]!r}", path, number)
        if (strange := next((name for name, kind in tokens if kind == "other"), None)) is not None:
            raise InputError(
                f"NLTK has no symbols such as {strange[:40]!r}; quote words, bracket probabilities", path, number
            )
        add_alternatives(read, tokens, path, number)
    if not read.rules:
        raise InputError("the grammar has no rules", path)
    read.labels = {written.get(name, name): label for name, label in labels.items()}
    return build(read, options, path)


def _token(match: re.Match[str]) -> tuple[str, str]:
    kind = match.lastgroup or ""
    name = match[kind]
    if kind in ("single", "double"):
        return name, "word"
    return name, "open" if kind in ("symbol", "other") and name in EMPTY_SIGNS else kind


@with_config(STRICT)
class _Names(TypedDict):
    """The comment in the first line: real names and labels by the written name."""

    symbols: dict[str, str]
    labels: dict[str, str]


def _head(line: str, path: str | Path | None) -> tuple[dict[str, str], dict[str, str]]:
    """Return real names and labels by the written name."""
    if not line.startswith(HEAD):
        return {}, {}
    what, remedy = "the table of names in the first line", "write the file again"
    names = decode_record(line[len(HEAD) :], _Names, what=what, remedy=remedy, path=path, line=1)
    return names["symbols"], names["labels"]


def format_nltk(pcfg: GrammarRules) -> str:
    """Return text that ``nltk.PCFG.fromstring`` reads, and `parse_nltk` reads back to the same grammar.

    Each probability is within one rounding, written without an exponent, which NLTK does not support.

    Raises:
        InputError: a word has both kinds of quotes in it, or is a symbol's name below one parent.
    """
    names: dict[str, str] = {}
    for symbol in pcfg.symbols:
        name = symbol
        if not _SYMBOL.fullmatch(name):
            name = "".join(c if re.fullmatch(r"[\w/<>-]", c) else f"^{ord(c):x}^" for c in symbol)
            name = name if _SYMBOL.fullmatch(name) else f"x{name}"
        while name in names:
            name += "_"
        names[name] = symbol
    written = list(names)
    words = [_quoted(word) for word in pcfg.vocabulary]
    head = {
        "symbols": {name: symbol for name, symbol in names.items() if name != symbol},
        "labels": {
            name: label
            for name, label, symbol in zip(written, pcfg.labels, names.values(), strict=True)
            if label != symbol
        },
    }
    rules: list[list[str]] = [[] for _ in written]
    for table, logp, below in (
        (pcfg.binary, pcfg.binary_logp, written),
        (pcfg.unary, pcfg.unary_logp, written),
        (pcfg.lexical, pcfg.lexical_logp, words),
    ):
        for rule, p in zip(table.tolist(), np.exp(logp), strict=True):
            number = np.format_float_positional(p, trim="0")
            rules[rule[0]].append(f"{' '.join(below[i] for i in rule[1:])} [{number}]")
    order = [pcfg.start, *(i for i in range(len(written)) if i != pcfg.start)]
    lines = [HEAD + json.dumps(head), f"%start {written[pcfg.start]}"]
    lines += [f"{written[i]} -> {rule}" for i in order for rule in rules[i]]
    return "\n".join(lines) + "\n"


def _quoted(word: str) -> str:
    quote = next((q for q in "'\"" if q not in word), None)
    if quote is None:
        raise InputError(f"NLTK text cannot hold the word {word!r}: it has both kinds of quotes in it")
    return f"{quote}{word}{quote}"


def from_nltk(grammar: nltk.PCFG, *, normalise: bool = False, cut_words: bool = False) -> GrammarRules:
    """Return the rules of an `nltk.PCFG`, whose strings are words and whose nonterminals are symbols.

    Three or more children become binary rules, as in `truesource.grammar.formats.text`. Every symbol is its own label.

    Args:
        grammar: result of `nltk.PCFG.fromstring` or `nltk.induce_pcfg`.
        normalise: divide the probabilities of each symbol by their sum, even if that is not within 0.01 of one.
        cut_words: as in `truesource.grammar.read_options.ReadOptions`.

    Raises:
        InputError: it is no `nltk.PCFG`, a rule has no probability above 0, a word is not a string, two symbols have
            the same name, or the probabilities of a symbol do not sum to one.
    """
    import nltk

    if not isinstance(grammar, nltk.PCFG):
        raise InputError(f"expecting an nltk.PCFG, got {type(grammar).__name__}")
    name = _names_of_symbols()
    read = TextRules(start=name(grammar.start()), tolerance=NLTK_TOLERANCE)
    for number, rule in enumerate(grammar.productions(), start=1):
        children = [_child(child, name, number) for child in rule.rhs()]
        if not rule.prob() > 0.0:
            raise InputError(f"rule {number} of the grammar has probability {rule.prob()}; remove it first")
        read.rules.append((name(rule.lhs()), children, rule.prob(), number))
    if not read.rules:
        raise InputError("the grammar has no rules")
    return build(read, ReadOptions(normalise=normalise, cut_words=cut_words))


def _names_of_symbols() -> Callable[[Any], str]:
    """Return names of nonterminals, whose symbols may be any objects."""
    names: dict[str, object] = {}

    def name(nonterminal: Any) -> str:
        symbol = nonterminal.symbol()
        written = str(symbol)
        if names.setdefault(written, symbol) != symbol:
            raise InputError(f"two symbols of the grammar are called {written!r}; rename one")
        return written

    return name


def _child(child: Any, name: Callable[[Any], str], number: int) -> tuple[str, str]:
    from nltk import Nonterminal

    if isinstance(child, Nonterminal):
        return name(child), "symbol"
    if not isinstance(child, str):
        raise InputError(f"rule {number} of the grammar has the word {child!r}, which is no string; use strings")
    return child, "word"


def to_nltk(pcfg: GrammarRules) -> nltk.PCFG:
    """Return the grammar as an `nltk.PCFG`, symbols and words under their own names; labels are lost."""
    import nltk

    symbols = [nltk.Nonterminal(symbol) for symbol in pcfg.symbols]
    rules: list[list[nltk.ProbabilisticProduction]] = [[] for _ in symbols]
    for table, logp, below in (
        (pcfg.binary, pcfg.binary_logp, symbols),
        (pcfg.unary, pcfg.unary_logp, symbols),
        (pcfg.lexical, pcfg.lexical_logp, pcfg.vocabulary),
    ):
        for (left, *children), p in zip(table.tolist(), np.exp(logp).tolist(), strict=True):
            rules[left].append(nltk.ProbabilisticProduction(symbols[left], [below[i] for i in children], prob=p))
    return nltk.PCFG(symbols[pcfg.start], [rule for of_symbol in rules for rule in of_symbol])


#: only our export is recognised; `truesource.grammar.formats.text` reads other NLTK text
FORMAT = GrammarFormat(
    read=lambda source, options: parse_nltk(source.text, options, source.path),
    write=text_writer(format_nltk),
    sniff=lambda source: source.first_line.startswith(HEAD),
)
