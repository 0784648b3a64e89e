"""EarleyX grammar text: ``VP->[V NP] : 0.6``, words as ``_word``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from truesource.grammar.formats import GrammarFormat, text_writer
from truesource.grammar.read_options import AS_WRITTEN, ReadOptions
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.errors import InputError
from truesource.grammar.text_rules import TextRules, build, top_symbol

START = "ROOT"
_SUBSTATE = re.compile(r"(\S+)_\d+")
_LINE = re.compile(r"(?:(?P<count>[0-9.eE+-]+)\s+)?(?P<parent>\S+?)\s*->\s*\[(?P<children>.*)\]\s*:\s*(?P<p>\S+)")


def parse_earleyx(text: str, options: ReadOptions = AS_WRITTEN, path: str | Path | None = None) -> GrammarRules:
    """Read EarleyX text; weights are divided by each symbol's sum, since the files of the format are rounded.

    A child ``_word`` is a word unless ``_word`` is itself a left-hand side. A number before the rule is the
    pseudo-count of a prior and has no effect on the language. If every symbol but ``ROOT`` has a name such as ``NP_3``,
    these are substates of the label ``NP``, and ``ATNP`` next to ``NP`` is ``@NP``, as exporters of split grammars
    write it.

    Args:
        text: the rules.
        options: how to read them. The default start symbol is ``ROOT``, else the only symbol below no other. The
            tool's own start is the child of its rule ``ROOT->[...]``.
        path: file named in errors.

    Raises:
        InputError: with the line at fault.
    """
    rules: list[tuple[str, list[str], float, int]] = []
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
            rules.append((match["parent"], match["children"].split(), weight, number))
    if not rules:
        raise InputError("the grammar has no rules", path)
    lefts = {parent for parent, *_ in rules}
    read = TextRules(
        start=options.start or top_symbol(((parent, children) for parent, children, *_ in rules), START, path)
    )
    read.labels = _labels(lefts)
    for parent, names, weight, number in rules:
        is_word = [name.startswith("_") and name not in lefts for name in names]
        for name, is_terminal in zip(names, is_word, strict=True):
            if not is_terminal and name not in lefts:
                raise InputError(f"the symbol {name!r} has no rules; write it _{name} if it is a word", path, number)
        children = [(name[1:], "word") if w else (name, "symbol") for name, w in zip(names, is_word, strict=True)]
        read.rules.append((parent, children, weight, number))
    return build(read, replace(options, normalise=True), path)


def _labels(names: Iterable[str]) -> dict[str, str]:
    """Return coarse labels of substates; none unless all names are substates."""
    split = {name: _SUBSTATE.fullmatch(name) for name in names if name != START}
    if not split or not all(split.values()):
        return {}
    bases = {name: match[1] for name, match in split.items() if match}
    labels = {START, *bases.values()}
    return {name: f"@{b[2:]}" if b.startswith("AT") and b[2:] in labels else b for name, b in bases.items()}


def format_earleyx(pcfg: GrammarRules) -> str:
    """EarleyX text with all digits, which `parse_earleyx` reads back to the same rules, each within one rounding.

    The tool starts from ``ROOT``: another start gets a rule ``ROOT->[START] : 1.0`` above it. Labels are lost.

    Raises:
        InputError: a name cannot be written, or ``ROOT`` is a symbol but not the start.
    """
    symbols = pcfg.symbols
    for name in symbols:
        if name.split() != [name] or name.startswith("_") or "->[" in name:
            raise InputError(
                f"EarleyX text cannot hold the symbol {name!r}: symbols have no white space, no ->[ and no _ in front"
            )
    for word in pcfg.vocabulary:
        if f"_{word}".split() != [f"_{word}"]:
            raise InputError(f"EarleyX text cannot hold the word {word!r}, which has white space")
    lines = []
    if START not in symbols:
        lines.append(f"{START}->[{symbols[pcfg.start]}] : 1.0")
    elif symbols[pcfg.start] != START and not _is_above_start(pcfg):
        raise InputError(f"EarleyX starts from {START}, which is another symbol of this grammar; rename that symbol")
    for rules, logp, names in (
        (pcfg.binary, pcfg.binary_logp, symbols),
        (pcfg.unary, pcfg.unary_logp, symbols),
        (pcfg.lexical, pcfg.lexical_logp, [f"_{word}" for word in pcfg.vocabulary]),
    ):
        for rule, p in zip(rules.tolist(), np.exp(logp).tolist(), strict=True):
            lines.append(f"{symbols[rule[0]]}->[{' '.join(names[i] for i in rule[1:])}] : {p!r}")
    return "\n".join(lines) + "\n"


def _is_above_start(pcfg: GrammarRules) -> bool:
    """Return True if ``ROOT`` has one rule, to the start symbol, and no parent."""
    root = pcfg.symbol_ids[START]
    below = np.concatenate([pcfg.binary[:, 1:].ravel(), pcfg.unary[:, 1]])
    only = [pcfg.unary[pcfg.unary[:, 0] == root, 1].tolist() == [pcfg.start]]
    only += [not (rules[:, 0] == root).any() for rules in (pcfg.binary, pcfg.lexical)]
    return all(only) and not (below == root).any()


FORMAT = GrammarFormat(
    read=lambda source, options: parse_earleyx(source.text, options, source.path),
    write=text_writer(format_earleyx),
    sniff=lambda source: _LINE.fullmatch(source.first_line.strip()) is not None,
)
