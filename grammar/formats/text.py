r"""Grammar text: ``S -> NP VP 0.9 | 'go' 0.1``, a superset of NLTK's format.

* One or more rules a line, alternatives after ``|``; ``#`` starts a comment at the start of a line.
* Each alternative ends in its probability, bare or in brackets (``[0.9]``).
* A name that stands left of an arrow is a symbol; any other is a word. Quotes (``'go'``, ``"go"``) make a
  word of anything, angle brackets (``<ADVP|PRT>``) a symbol; inside both, a backslash escapes.
* Three or more children become a chain of binary rules through symbols labelled ``@PARENT``; a word beside
  other children gets a symbol of its own. Both are exact.
* ``%start NAME`` (default: the first left-hand side) and ``%label NAME LABEL`` (default: the name) are optional.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from grammar.errors import InputError
from grammar.formats.assemble import Rules, assemble
from grammar.pcfg import PCFG

_TOKEN = re.compile(
    r"""\s*(?:
      '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)" | <(?P<angle>(?:[^>\\]|\\.)+)>(?=\s|$)
      | (?P<arrow>->)(?=\s) | (?P<bar>\|)(?=\s|$) | \[(?P<boxed>[^\]\s]+)\](?=\s|$) | (?P<bare>\S+)
    )""",
    re.VERBOSE,
)
NLTK_HEADING = re.compile(r"Grammar with \d+ productions \(start state = (\S+)\)")  # of str(nltk.PCFG)
_PLAIN = re.compile(r"[^\s'\"<%#\[|\\][^\s'\"|\\]*")


@dataclass
class TextRules:
    """What a text says, before symbols and words are told apart."""

    start: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    #: parent, children as (name, kind), weight; kind is "word", "symbol" or "open" (decided by the left-hand sides)
    rules: list[tuple[str, list[tuple[str, str]], float, int]] = field(default_factory=list)


def _tokens(line: str) -> list[tuple[str, str]]:
    found = []
    for match in _TOKEN.finditer(line.rstrip()):
        kind = match.lastgroup or ""
        text = match[kind]
        if kind in ("single", "double"):
            found.append((re.sub(r"\\(.)", r"\1", text), "word"))
        elif kind == "angle":
            found.append((re.sub(r"\\(.)", r"\1", text), "symbol"))
        else:
            found.append((text, "open" if kind == "bare" else kind))
    return found


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


def parse_text(text: str, *, start: str | None = None, normalise: bool = False, path: str | Path | None = None) -> PCFG:
    """Read grammar text (module docstring).

    Args:
        text: the rules.
        start: start symbol, before ``%start`` and the first left-hand side.
        normalise: take numbers as weights and divide by each symbol's sum.
        path: named in errors.

    Raises:
        InputError: with the line at fault.
    """
    return build(_read(text, path), start=start, normalise=normalise, path=path)


def build(
    read: TextRules, *, start: str | None = None, normalise: bool = False, path: str | Path | None = None
) -> PCFG:
    """The grammar that a text describes; arguments and errors as for `parse_text`."""
    lefts = dict.fromkeys(parent for parent, _, _, _ in read.rules)
    labels = {name: read.labels.get(name, name) for name in lefts}
    first = start or read.start or next(iter(lefts))
    if first not in lefts:
        raise InputError(f"the start symbol {first!r} has no rules", path)
    flat: list[tuple[int, str, tuple[str, ...], float]] = []  # kind: 0 binary, 1 unary, 2 lexical
    made: dict[str, tuple[str, ...]] = {}

    def symbol(name: str, kind: str, line: int) -> str:
        if kind == "word" or (kind == "open" and name not in lefts):
            wrapper = f"'{name}'"
            made[wrapper] = (name,)
            labels[wrapper] = wrapper
            return wrapper
        if name not in lefts:
            raise InputError(f"the symbol {name!r} has no rules", path, line)
        return name

    for left, children, weight, line in read.rules:
        if len(children) == 1:
            name, kind = children[0]
            if kind == "word" or (kind == "open" and name not in lefts):
                flat.append((2, left, (name,), weight))
            else:
                flat.append((1, left, (symbol(name, kind, line),), weight))
            continue
        parent, share = left, weight
        names = [symbol(name, kind, line) for name, kind in children]
        while len(names) > 2:
            chain = f"@{left}: {' '.join(names[1:])}"
            flat.append((0, parent, (names[0], chain), share))
            if chain in made:
                break
            made[chain] = ()
            labels[chain] = "@" + labels[left].lstrip("@")
            parent, share, names = chain, 1.0, names[1:]
        else:
            flat.append((0, parent, (names[0], names[1]), share))
    flat += [(2, wrapper, spelled, 1.0) for wrapper, spelled in made.items() if spelled]
    rules = Rules([first, *lefts, *made])
    for number, parent, below, weight in flat:
        ids = map(rules.word if number == 2 else rules.symbol, below)
        rules.add(number, (rules.symbol(parent), *ids), weight)
    return assemble(rules, start=first, labels=labels, divide=normalise, path=path)


def _write_symbol(name: str) -> str:
    if _PLAIN.fullmatch(name) and name != "->" and not name.endswith("]"):
        return name
    return "<" + re.sub(r"([\\>])", r"\\\1", name) + ">"


def _write_word(word: str) -> str:
    return "'" + re.sub(r"(['\\])", r"\\\1", word) + "'"


def format_text(pcfg: PCFG) -> str:
    """Text that `parse_text` reads back to the same rules, each probability within one rounding."""
    names = [_write_symbol(s) for s in pcfg.symbols]
    lines = [f"%start {names[pcfg.start]}"]
    lines += [
        f"%label {names[i]} {_write_symbol(label)}" for i, label in enumerate(pcfg.labels) if label != pcfg.symbols[i]
    ]
    rules: list[list[str]] = [[] for _ in names]
    for (a, b, c), p in zip(pcfg.binary, np.exp(pcfg.binary_logp), strict=True):
        rules[a].append(f"{names[b]} {names[c]} {float(p)!r}")
    for (a, b), p in zip(pcfg.unary, np.exp(pcfg.unary_logp), strict=True):
        rules[a].append(f"{names[b]} {float(p)!r}")
    for (a, w), p in zip(pcfg.lexical, np.exp(pcfg.lexical_logp), strict=True):
        rules[a].append(f"{_write_word(pcfg.terminals[w])} {float(p)!r}")
    order = [pcfg.start, *(i for i in range(len(names)) if i != pcfg.start)]
    lines += [f"{names[i]} -> {rule}" for i in order for rule in rules[i]]
    return "\n".join(lines) + "\n"
