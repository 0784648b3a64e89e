"""Rules with any number of children, as written in texts, and their grammar."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truesource.grammar.collected_rules import RowScaling, Rules, assemble
from truesource.grammar.read_options import AS_WRITTEN, ReadOptions
from truesource.grammar.rules import ROW_TOLERANCE, GrammarRules
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import word_label
from truesource.grammar.treebank.head_rules import HeadRules

log = logging.getLogger("truesource.grammar")
EMPTY_NAMES = ("eps", "epsilon")  #: names of the empty string in angle brackets
EMPTY_SIGNS = ("ε", "ϵ", "λ", "∅", "epsilon", *(f"<{name}>" for name in EMPTY_NAMES))  #: empty strings
Key = tuple[
    Any, ...
]  #: origin of a symbol: ("symbol", name), ("word", word), ("chain", left-hand side, and the keys of its children)


@dataclass
class TextRules:
    """Content of a text, before symbols and words are distinguished."""

    start: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    heads: list[tuple[str, int]] = field(default_factory=list)  #: text after ``%head``, and its line
    #: parent, children as (name, kind), weight; kind is "word", "symbol" or "open" (decided by the left-hand sides)
    #: without children, the rule is empty
    rules: list[tuple[str, list[tuple[str, str]], float, int]] = field(default_factory=list)
    tolerance: float = ROW_TOLERANCE  #: tolerance of the sum of a symbol's probabilities


def build(read: TextRules, options: ReadOptions = AS_WRITTEN, path: str | Path | None = None) -> GrammarRules:
    """Build the grammar of a text.

    Empty rules are removed, see `truesource.grammar.empty_rules`; ``meta["empty"]`` records them.

    Args:
        read: the text.
        options: how to read it.
        path: file named in errors.

    Raises:
        InputError: with the line at fault.
    """
    lefts = dict.fromkeys(parent for parent, _, _, _ in read.rules)
    start = options.start or read.start or next(iter(lefts))
    if start not in lefts:
        raise InputError(f"the start symbol {start!r} has no rules; choose another", path)
    for i, (left, children, weight, line) in enumerate(read.rules):
        parts = _split(children) if options.cut_words else children
        read.rules[i] = left, [child for child in parts if not _is_empty(child, lefts)], weight, line
    unquoted = _unquoted(read, lefts)
    if unquoted and not options.lenient:
        name, line = next(iter(unquoted.items()))
        raise InputError(
            f"{name!r} has no rules and no quotes, unlike other words of this text; quote it if it is a word,"
            " or give it rules",
            path,
            line,
        )
    names = _SymbolNames([start, *lefts], {name: read.labels.get(name, name) for name in lefts})
    flat, empty = _binarised(read, names, lefts, path)
    rules = Rules(names.names.values())
    for number, parent, below, weight in flat:
        ids = map(rules.word if number == 2 else rules.symbol, below)
        rules.add(number, (rules.symbol(parent), *ids), weight)
    tables = rules.tables()
    meta: dict[str, object] = {"unquoted": unquoted} if unquoted else {}
    if read.heads:
        heads = HeadRules.parse(read.heads, path)
        heads.require_known(names.labels.values(), path)
        meta["heads"] = list(heads.lines)
    scaling = RowScaling(options.normalise, read.tolerance, path)
    if empty:
        from truesource.grammar.empty_rules import remove_empty_rules

        tables, masses = scaling.apply(rules, tables, {rules.symbols[name]: weight for name, weight in empty.items()})
        rules, removed = remove_empty_rules(rules, tables, masses, rules.symbols[start], path)
        meta["empty"] = removed.as_meta()
        log.info(
            "%s: removed %d empty rules; sentences keep their probabilities given that they are not empty"
            " (the empty sentence had probability %.6g)",
            "grammar" if path is None else path,
            removed.rules,
            removed.mass,
        )
        tables = rules.tables()
    return assemble(rules, start=start, labels=names.labels, scaling=scaling, meta=meta, tables=tables)


def _binarised(
    read: TextRules, names: _SymbolNames, lefts: Container[str], path: str | Path | None
) -> tuple[list[tuple[int, str, tuple[str, ...], float]], dict[str, float]]:
    """Return rules as (kind, parent, children, weight), kind 0 binary, 1 unary, 2 lexical; and empty rules' weights."""
    flat: list[tuple[int, str, tuple[str, ...], float]] = []
    empty: dict[str, float] = {}
    for left, children, weight, line in read.rules:
        keys: list[Key] = []
        for name, kind in children:
            if kind == "symbol" and name not in lefts:
                raise InputError(f"the symbol {name!r} has no rules; add rules, or quote it", path, line)
            keys.append(("symbol" if kind != "word" and name in lefts else "word", name))
        if not keys:
            empty[left] = empty.get(left, 0.0) + weight
            continue
        if len(keys) == 1:
            kind, name = keys[0]
            flat.append((2 if kind == "word" else 1, left, (name,), weight))
            continue
        parent, share = left, weight
        for key in keys:
            names.symbol(key)
        while len(keys) > 2:
            is_new = ("chain", left, *keys[1:]) not in names.names
            chain = names.chain(left, keys[1:])
            flat.append((0, parent, (names.symbol(keys[0]), chain), share))
            if not is_new:
                break
            parent, share, keys = chain, 1.0, keys[1:]
        else:
            flat.append((0, parent, (names.symbol(keys[0]), names.symbol(keys[1])), share))
    flat += [(2, names.names[key], (key[1],), 1.0) for key in names.names if key[0] == "word"]
    return flat, empty


def _is_empty(child: tuple[str, str], lefts: Container[str]) -> bool:
    """Return True if a child denotes the empty string: unquoted, and no symbol of the text."""
    name, kind = child
    signs = EMPTY_SIGNS if kind == "open" else EMPTY_NAMES if kind == "symbol" else ()
    return name in signs and name not in lefts


def _split(children: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the children with words split at white space."""
    for name, kind in children:
        if kind == "word":
            yield from ((part, kind) for part in name.split())
        else:
            yield name, kind


def top_symbol(rules: Iterable[tuple[str, Iterable[str]]], usual: str, path: str | Path | None) -> str:
    """Return the start symbol of a text without one: the usual one, else the only one below no other symbol.

    Args:
        rules: parents and names of their children.
        usual: start symbol by the format's convention.
        path: named in errors.

    Raises:
        InputError: there is no usual one, and no or several symbols are below no other.
    """
    parents: dict[str, None] = {}
    below: set[str] = set()
    for parent, children in rules:
        parents[parent] = None
        below.update(child for child in children if child != parent)
    tops = [usual] if usual in parents else [name for name in parents if name not in below]
    if len(tops) == 1:
        return tops[0]
    some = f" (candidates: {', '.join(tops[:5])})" if tops else ""
    raise InputError(f"there is no start symbol {usual}; choose one{some}: truesource convert --start NAME", path)


def _unquoted(read: TextRules, lefts: Container[str]) -> dict[str, int]:
    """Return names without rules or quotes in a text that quotes other words, each with its first line."""
    tokens = [(name, kind, line) for _, children, _, line in read.rules for name, kind in children]
    if not any(kind == "word" for _, kind, _ in tokens):
        return {}
    result: dict[str, int] = {}
    for name, kind, line in tokens:
        if kind == "open" and name not in lefts:
            result.setdefault(name, line)
    return result


class _SymbolNames:
    """Symbols by origin: symbols of the text, of words among other children, and of rests of long rules.

    The keys are tuples, so that no two of them collide; a name that is taken gets primes.
    """

    def __init__(self, written: Iterable[str], labels: dict[str, str]) -> None:
        self.names: dict[Key, str] = {("symbol", name): name for name in written}
        self.labels = labels  #: treebank label of each name
        self._taken = set(self.names.values())

    def symbol(self, key: Key) -> str:
        """Return the name of a symbol of the text, or of a word's preterminal."""
        if key not in self.names:
            name = self._add(key, word_label(str(key[1])))
            self.labels[name] = name
        return self.names[key]

    def chain(self, left: str, keys: Sequence[Key]) -> str:
        """Return the name of the rest of a rule of ``left`` after the children before ``keys`` are split off."""
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
