r"""Grammar text: ``S -> NP VP 0.9 | 'go' 0.1``, a superset of NLTK's format.

* One or more rules a line, alternatives after ``|``; ``#`` starts a comment, at the start of a line or after a rule.
* Each alternative ends in its probability, bare or in brackets (``[0.9]``). If all are in brackets, a symbol's may
  sum to one within 0.01, as NLTK allows; they are then divided by their sum.
* ``ε`` (or ``λ``, ``∅``, ``epsilon``, ``<eps>``, ``<epsilon>``), or nothing between a bar and the probability, is the
  empty string: such rules are removed exactly (`truesource.grammar.empty_rules`). A word spelled so is quoted.
* A line that ends in a backslash continues in the next one.
* A name to the left of an arrow is a symbol; any other is a word. Quotes (``'go'``, ``"go"``) make a
  word of anything, angle brackets (``<ADVP|PRT>``) a symbol; inside both, a backslash escapes. A text that quotes
  one word quotes all: there a name without rules and without quotes is a mistake.
* Three or more children become a chain of binary rules through symbols labelled ``@PARENT``; a word next to
  other children gets a symbol of its own. Both are exact.
* ``%start NAME`` (default: the first left-hand side) and ``%label NAME LABEL`` (default: the name) are optional, and
  so are heads, by rule or by label: ``%head VP -> *V NP``, ``%head VP: V Aux`` (`grammar.treebank.head_rules`).
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from truesource.grammar.formats import GrammarFormat, text_writer
from truesource.grammar.read_options import AS_WRITTEN, ReadOptions
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.errors import InputError
from truesource.grammar.text_rules import TextRules, build
from truesource.grammar.treebank.head_rules import HeadRules

_TOKEN = re.compile(
    r"""\s*(?:
      '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)" | <(?P<angle>(?:[^>\\]|\\.)+)>(?=\s|$)
      | (?P<arrow>->)(?=\s) | (?P<bar>\|)(?=\s|$) | \[(?P<boxed>[^\]\s]+)\](?=\s|$) | (?P<bare>\S+)
    )""",
    re.VERBOSE,
)
NLTK_HEADING = re.compile(r"Grammar with \d+ productions \(start state = '?(\S+?)'?\)")  # heading of str(nltk.PCFG)
NLTK_TOLERANCE = 0.01  #: NLTK's tolerance for the sum of a symbol's probabilities
_ARROWS = ("→", "⟶", "=>", "::=", "-->", ":-", ":")  #: arrows of other notations
_NOTATION = re.compile(r"\([^()]+\)|[^\[]*\[[^\]]*[=?][^\]]*\]?")  #: an optional child, features in brackets
_PLAIN = re.compile(r"[^\s'\"<%#\[|\\][^\s'\"|\\]*")


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
    is_boxed = True
    for number, stripped in logical_lines(text):
        if not read.rules and (heading := NLTK_HEADING.fullmatch(stripped)):
            read.start = heading[1]
            continue
        if stripped.split(maxsplit=1)[0] == "%head":
            read.heads.append((stripped.removeprefix("%head").strip(), number))
            continue
        tokens = _tokens(re.sub(r"^% +(?=(?:start|label)\s)", "%", stripped))
        words = [name for name, _ in tokens]
        if tokens[0] in (("%start", "open"), ("%label", "open")):
            if len(words) != (2 if words[0] == "%start" else 3):
                raise InputError(f"{words[0]} has the wrong number of names after it, {len(words) - 1}", path, number)
            if words[0] == "%start":
                read.start = words[1]
            else:
                read.labels[words[1]] = words[2]
            continue
        featured = tokens[0][1] == "open" and _NOTATION.fullmatch(tokens[0][0])
        if featured or len(tokens) < 2 or tokens[1][1] != "arrow" or tokens[0][1] not in ("open", "symbol"):
            arrow = next((name for name, _ in tokens[1:2] if name in _ARROWS), None)
            hint = "" if arrow is None else f"; write -> in place of {arrow}"
            if _NOTATION.fullmatch(stripped.split(maxsplit=1)[0]):
                hint = "; features in brackets are notation of grammars without probabilities"
            raise InputError(f"expecting a rule such as S -> NP VP 0.9, got {stripped[:60]!r}{hint}", path, number)
        add_alternatives(read, tokens, path, number)
        is_boxed &= all(_weight(*token) is None for token in tokens if token[1] == "open")
    if not read.rules:
        raise InputError("the grammar has no rules", path)
    if is_boxed:
        read.tolerance = NLTK_TOLERANCE
    return read


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number, line) without comments and blank lines; a backslash at the end of a line joins the next to it."""
    start, parts = 1, list[str]()
    # not splitlines, which breaks at Unicode line separators; words may hold these
    for number, line in enumerate([*re.split(r"\r\n|\r|\n", text), ""], start=1):
        stripped = line.strip()
        if not parts:
            if not stripped or stripped.startswith("#"):
                continue
            start = number
        parts.append(stripped.removesuffix("\\"))
        if not stripped.endswith("\\"):
            line = " ".join(parts).strip()
            if line:  # empty if each of its lines is a lone backslash
                yield start, line
            parts = []


def add_alternatives(read: TextRules, tokens: list[tuple[str, str]], path: str | Path | None, line: int) -> None:
    """Add one line: a left-hand side, an arrow, and alternatives with a ``bar`` between them."""
    tokens = _without_comment(tokens)
    alternative: list[tuple[str, str]] = []
    barred = any(kind == "bar" for _, kind in tokens)
    for token in [*tokens[2:], ("|", "bar")]:
        if token[1] != "bar":
            alternative.append(token)
            continue
        read.rules.append((tokens[0][0], *_alternative(alternative, barred, path, line), line))
        alternative = []


def _without_comment(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the tokens up to a ``#`` after a probability, if the line does not end in a probability without that."""
    if _weight(*tokens[-1]) is not None:
        return tokens
    marks = (i for i in range(3, len(tokens)) if tokens[i][1] in ("open", "other") and tokens[i][0].startswith("#"))
    end = next((i for i in marks if _weight(*tokens[i - 1]) is not None), len(tokens))
    return tokens[:end]


def _weight(name: str, kind: str) -> float | None:
    """Return the number that a token denotes, or None."""
    if kind not in ("open", "boxed"):
        return None
    try:
        value = float(name)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _alternative(
    tokens: list[tuple[str, str]], barred: bool, path: str | Path | None, line: int
) -> tuple[list[tuple[str, str]], float]:
    """Return children and probability; no children for an empty rule."""
    if not tokens:
        raise InputError("an alternative is empty; write children and a probability", path, line)
    *children, (last, kind) = tokens
    weight = _weight(last, kind)
    if weight is None:
        raise InputError(f"a rule must end in its probability, such as 0.9 or [0.9], got {last!r}", path, line)
    if weight <= 0.0:
        raise InputError(f"the probability {last} is not positive; remove this rule", path, line)
    if not children and kind != "boxed" and not barred:
        raise InputError(
            f"the rule has no children; write ε before the probability of an empty rule, as in ε {last}", path, line
        )
    if any(kind in ("arrow", "boxed") for _, kind in children):
        raise InputError("an arrow or a bracketed number is among the children; write one rule a line", path, line)
    for name, kind in children:
        if kind == "open" and _NOTATION.fullmatch(name):
            raise InputError(
                f"{name[:40]!r} is notation of other grammars; write one rule for each form of a child that is"
                " optional or has features, or quote it if it is a word",
                path,
                line,
            )
    return children, weight


def parse_text(text: str, options: ReadOptions = AS_WRITTEN, path: str | Path | None = None) -> GrammarRules:
    """Read grammar text (module docstring).

    Args:
        text: the rules.
        options: how to read them.
        path: file named in errors.

    Raises:
        InputError: with the line at fault.
    """
    if not isinstance(text, str):
        raise InputError(
            f'expecting the text of a grammar, such as "S -> NP VP 1", got {reprlib.repr(text)}; PCFG.load reads files'
        )
    return build(_read(text, path), options, path)


def _write_symbol(name: str) -> str:
    if _PLAIN.fullmatch(name) and name != "->" and not name.endswith("]") and not _NOTATION.fullmatch(name):
        return name
    return "<" + re.sub(r"([\\>])", r"\\\1", name) + ">"


def format_text(pcfg: GrammarRules) -> str:
    """Return text that `parse_text` reads back to the same rules, each probability within one rounding."""
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
        word = re.sub(r"(['\\])", r"\\\1", pcfg.vocabulary[w])
        rules[a].append(f"'{word}' {float(p)!r}")
    order = [pcfg.start, *(i for i in range(len(names)) if i != pcfg.start)]
    lines += [f"{names[i]} -> {rule}" for i in order for rule in rules[i]]
    return "\n".join(lines) + "\n"


FORMAT = GrammarFormat(
    read=lambda source, options: parse_text(source.text, options, source.path),
    write=text_writer(format_text),
    sniff=lambda source: bool(source.first_line),
)
