r"""Grammar text: ``S -> NP VP 0.9 | 'go' 0.1``, a superset of NLTK's format.

* One or more rules a line, alternatives after ``|``; ``#`` starts a comment at the start of a line.
* Each alternative ends in its probability, bare or in brackets (``[0.9]``).
* A name that stands left of an arrow is a symbol; any other is a word. Quotes (``'go'``, ``"go"``) make a
  word of anything, angle brackets (``<ADVP|PRT>``) a symbol; inside both, a backslash escapes. A text that quotes
  one word quotes all: there a name without rules and without quotes is a mistake.
* Three or more children become a chain of binary rules through symbols labelled ``@PARENT``; a word beside
  other children gets a symbol of its own. Both are exact.
* ``%start NAME`` (default: the first left-hand side) and ``%label NAME LABEL`` (default: the name) are optional, and
  so are heads, by rule or by label: ``%head VP -> *V NP``, ``%head VP: V Aux`` (`grammar.treebank.head_rules`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from truesource.grammar.formats import GrammarFormat, GrammarSource, ReadOptions, text_writer
from truesource.grammar.rules import GrammarRules, Rules, assemble
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import word_label
from truesource.grammar.treebank.head_rules import HeadRules

_TOKEN = re.compile(
    r"""\s*(?:
      '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)" | <(?P<angle>(?:[^>\\]|\\.)+)>(?=\s|$)
      | (?P<arrow>->)(?=\s) | (?P<bar>\|)(?=\s|$) | \[(?P<boxed>[^\]\s]+)\](?=\s|$) | (?P<bare>\S+)
    )""",
    re.VERBOSE,
)
Key = tuple[
    Any, ...
]  #: what a symbol is: ("symbol", name), ("word", word), ("chain", left-hand side, and the keys of its children)
NLTK_HEADING = re.compile(r"Grammar with \d+ productions \(start state = (\S+)\)")  # of str(nltk.PCFG)
_PLAIN = re.compile(r"[^\s'\"<%#\[|\\][^\s'\"|\\]*")


@dataclass
class TextRules:
    """Content of a text, before symbols and words are told apart."""

    start: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    heads: list[tuple[str, int]] = field(default_factory=list)  #: what stands after ``%head``, and its line
    #: parent, children as (name, kind), weight; kind is "word", "symbol" or "open" (decided by the left-hand sides)
    rules: list[tuple[str, list[tuple[str, str]], float, int]] = field(default_factory=list)


def _tokens(line: str) -> list[tuple[str, str]]:
    result = []
    for match in _TOKEN.finditer(line.rstrip()):
        kind = match.lastgroup or ""
        text = match[kind]
        if kind in ("single", "double"):
            result.append((re.sub(r"\\(.)", r"\1", text), "word"))
        elif kind == "angle":
            result.append((re.sub(r"\\(.)", r"\1", text), "symbol"))
        else:
            result.append((text, "open" if kind == "bare" else kind))
    return result


def _read(text: str, path: str | Path | None) -> TextRules:
    read = TextRules()
    # not splitlines: words may hold the Unicode line separators that it breaks at
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if number == 1 and (heading := NLTK_HEADING.fullmatch(stripped)):
            read.start = heading[1]
            continue
        if stripped.split(maxsplit=1)[0] == "%head":
            read.heads.append((stripped.removeprefix("%head").strip(), number))
            continue
        tokens = _tokens(stripped)
        words = [name for name, _ in tokens]
        if tokens[0] in (("%start", "open"), ("%label", "open")):
            if len(words) != (2 if words[0] == "%start" else 3):
                raise InputError(
                    f"{words[0]} has {len(words) - 1} names after it, expecting another number", path, number
                )
            if words[0] == "%start":
                read.start = words[1]
            else:
                read.labels[words[1]] = words[2]
            continue
        if len(tokens) < 2 or tokens[1][1] != "arrow" or tokens[0][1] not in ("open", "symbol"):
            raise InputError(f"expecting a rule such as S -> NP VP 0.9, got {stripped[:60]!r}", path, number)
        add_alternatives(read, tokens, path, number)
    if not read.rules:
        raise InputError("the grammar has no rules", path)
    return read


def add_alternatives(read: TextRules, tokens: list[tuple[str, str]], path: str | Path | None, line: int) -> None:
    """Take in one line: a left-hand side, an arrow, and alternatives with a ``bar`` between them."""
    alternative: list[tuple[str, str]] = []
    for token in [*tokens[2:], ("|", "bar")]:
        if token[1] != "bar":
            alternative.append(token)
            continue
        read.rules.append((tokens[0][0], *_alternative(alternative, path, line), line))
        alternative = []


def _alternative(
    tokens: list[tuple[str, str]], path: str | Path | None, line: int
) -> tuple[list[tuple[str, str]], float]:
    if not tokens:
        raise InputError("an alternative is empty; write children and a probability", path, line)
    *children, (last, kind) = tokens
    try:
        weight = float(last) if kind in ("open", "boxed") else math.nan
    except ValueError:
        weight = math.nan
    if not math.isfinite(weight):
        raise InputError(f"a rule must end in its probability, got {last!r}", path, line)
    if weight <= 0.0:
        raise InputError(f"the probability {last} is not positive; leave such a rule out", path, line)
    if not children:
        raise InputError("empty rules are not supported; remove them from the grammar first", path, line)
    if any(kind in ("arrow", "boxed") for _, kind in children):
        raise InputError("an arrow or a bracketed number stands among the children", path, line)
    return children, weight


def parse_text(
    text: str,
    *,
    start: str | None = None,
    normalise: bool = False,
    path: str | Path | None = None,
    lenient: bool = False,
) -> GrammarRules:
    """Read grammar text (module docstring).

    Args:
        text: the rules.
        start: start symbol, before ``%start`` and the first left-hand side.
        normalise: take numbers as weights and divide by each symbol's sum.
        path: named in errors.
        lenient: take unquoted names without rules as words even where other words are quoted, and note them with
            their lines in ``meta["unquoted"]``, as `truesource.grammar.diagnostics` wants them.

    Raises:
        InputError: with the line at fault.
    """
    return build(_read(text, path), start=start, normalise=normalise, path=path, lenient=lenient)


def build(
    read: TextRules,
    *,
    start: str | None = None,
    normalise: bool = False,
    path: str | Path | None = None,
    lenient: bool = False,
) -> GrammarRules:
    """The grammar that a text describes; arguments and errors as for `parse_text`."""
    lefts = dict.fromkeys(parent for parent, _, _, _ in read.rules)
    first = start or read.start or next(iter(lefts))
    if first not in lefts:
        raise InputError(f"the start symbol {first!r} has no rules", path)
    unquoted = _unquoted(read, lefts)
    if unquoted and not lenient:
        name, line = next(iter(unquoted.items()))
        raise InputError(
            f"{name!r} has no rules, and is not quoted as other words of this text are; quote it if it is a word,"
            " or give it rules",
            path,
            line,
        )
    made = _Made([first, *lefts], {name: read.labels.get(name, name) for name in lefts})
    flat: list[tuple[int, str, tuple[str, ...], float]] = []  # kind: 0 binary, 1 unary, 2 lexical
    for left, children, weight, line in read.rules:
        keys: list[Key] = []
        for name, kind in children:
            if kind == "symbol" and name not in lefts:
                raise InputError(f"the symbol {name!r} has no rules", path, line)
            keys.append(("symbol" if kind != "word" and name in lefts else "word", name))
        if len(keys) == 1:
            kind, name = keys[0]
            flat.append((2 if kind == "word" else 1, left, (name,), weight))
            continue
        parent, share = left, weight
        for key in keys:
            made.symbol(key)
        while len(keys) > 2:
            is_new = ("chain", left, *keys[1:]) not in made.names
            chain = made.chain(left, keys[1:])
            flat.append((0, parent, (made.symbol(keys[0]), chain), share))
            if not is_new:
                break
            parent, share, keys = chain, 1.0, keys[1:]
        else:
            flat.append((0, parent, (made.symbol(keys[0]), made.symbol(keys[1])), share))
    flat += [(2, made.names[key], (key[1],), 1.0) for key in made.names if key[0] == "word"]
    rules = Rules(made.names.values())
    for number, parent, below, weight in flat:
        ids = map(rules.word if number == 2 else rules.symbol, below)
        rules.add(number, (rules.symbol(parent), *ids), weight)
    meta: dict[str, Any] = {"unquoted": unquoted} if unquoted else {}
    if read.heads:
        heads = HeadRules.parse(read.heads, path)
        heads.require_known(made.labels.values(), path)
        meta["heads"] = list(heads.lines)
    return assemble(rules, start=first, labels=made.labels, divide=normalise, path=path, meta=meta)


def _unquoted(read: TextRules, lefts: Container[str]) -> dict[str, int]:
    """Names without rules or quotes in a text that quotes other words, each with its first line."""
    tokens = [(name, kind, line) for _, children, _, line in read.rules for name, kind in children]
    if not any(kind == "word" for _, kind, _ in tokens):
        return {}
    result: dict[str, int] = {}
    for name, kind, line in tokens:
        if kind == "open" and name not in lefts:
            result.setdefault(name, line)
    return result


class _Made:
    """Symbols by what they are: those of the text, those of words among other children, and rests of long rules.

    The keys are tuples, so that no two of them run together; a name that is taken gets primes.
    """

    def __init__(self, written: Iterable[str], labels: dict[str, str]) -> None:
        self.names: dict[Key, str] = {("symbol", name): name for name in written}
        self.labels = labels  #: treebank label of each name
        self._taken = set(self.names.values())

    def symbol(self, key: Key) -> str:
        """Name of a symbol of the text, or of the one that a word has of its own."""
        if key not in self.names:
            name = self._add(key, word_label(str(key[1])))
            self.labels[name] = name
        return self.names[key]

    def chain(self, left: str, keys: Sequence[Key]) -> str:
        """Name of what is left of a rule of ``left`` when the children before ``keys`` are split off."""
        key = ("chain", left, *keys)
        if key not in self.names:
            children = " ".join(self.symbol(child) for child in keys)
            name = self._add(key, f"@{left}: {children}")
            self.labels[name] = "@" + self.labels[left].lstrip("@")
        return self.names[key]

    def _add(self, key: Key, name: str) -> str:
        while name in self._taken:
            name += "'"
        self._taken.add(name)
        self.names[key] = name
        return name


def _write_symbol(name: str) -> str:
    if _PLAIN.fullmatch(name) and name != "->" and not name.endswith("]"):
        return name
    return "<" + re.sub(r"([\\>])", r"\\\1", name) + ">"


def format_text(pcfg: GrammarRules) -> str:
    """Text that `parse_text` reads back to the same rules, each probability within one rounding."""
    names = [_write_symbol(s) for s in pcfg.symbols]
    lines = [f"%start {names[pcfg.start]}"]
    lines += [
        f"%label {names[i]} {_write_symbol(label)}" for i, label in enumerate(pcfg.labels) if label != pcfg.symbols[i]
    ]
    lines += [f"%head {line}" for line in HeadRules.of(pcfg).lines_about(pcfg.labels)]
    rules: list[list[str]] = [[] for _ in names]
    for (a, b, c), p in zip(pcfg.binary, np.exp(pcfg.binary_logp), strict=True):
        rules[a].append(f"{names[b]} {names[c]} {float(p)!r}")
    for (a, b), p in zip(pcfg.unary, np.exp(pcfg.unary_logp), strict=True):
        rules[a].append(f"{names[b]} {float(p)!r}")
    for (a, w), p in zip(pcfg.lexical, np.exp(pcfg.lexical_logp), strict=True):
        word = re.sub(r"(['\\])", r"\\\1", pcfg.terminals[w])
        rules[a].append(f"'{word}' {float(p)!r}")
    order = [pcfg.start, *(i for i in range(len(names)) if i != pcfg.start)]
    lines += [f"{names[i]} -> {rule}" for i in order for rule in rules[i]]
    return "\n".join(lines) + "\n"


def _read_source(source: GrammarSource, options: ReadOptions) -> GrammarRules:
    start, normalise, lenient = options.start, options.normalise, options.lenient
    return parse_text(source.text, start=start, normalise=normalise, path=source.path, lenient=lenient)


FORMAT = GrammarFormat(read=_read_source, write=text_writer(format_text), sniff=lambda source: bool(source.first_line))
