"""Writing Berkeley parser text; `truesource.grammar.formats.berkeley` reads it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from truesource.grammar.formats.shared.berkeley_files import START, target_files
from truesource.grammar.formats.shared.unclose import is_closed
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import atomic_path


def state_names(pcfg: GrammarRules) -> list[tuple[str, int]]:
    """Label and substate of each symbol, all different.

    Names such as ``NP_3`` or ``NP-3`` with the label ``NP`` keep their numbers, where all symbols are so named;
    otherwise the symbols of a label are counted from 0.
    """
    found: list[tuple[str, int]] = []
    for name, label in zip(pcfg.symbols, pcfg.labels, strict=True):
        match = re.fullmatch(r"[_-](0|[1-9][0-9]{0,3})", name[len(label) :]) if name.startswith(label) else None
        if match is None and name != label:
            break
        found.append((label, int(match[1]) if match else 0))
    if len(set(found)) == len(pcfg.symbols):
        return found
    count: dict[str, int] = {}
    found = []
    for label in pcfg.labels:
        found.append((label, count.get(label, 0)))
        count[label] = count.get(label, 0) + 1
    return found


def save_berkeley(pcfg: GrammarRules, path: str | Path) -> None:
    """Write the pair; ``path`` is either file's name or what the two have in common.

    The format starts from ``ROOT_0``: another start gets a rule ``ROOT_0 -> START 1.0`` above it. Names of
    symbols follow `state_names`, and the start comes first.

    Raises:
        InputError: a name is empty or has a blank in it, ``ROOT_0`` is a symbol but not the start, or a symbol rewrites
            only to itself.
    """
    targets = target_files(path, pcfg)
    pairs = state_names(pcfg)
    for what, written in (("label", pcfg.labels), ("word", pcfg.terminals)):
        bad = next((name for name in written if not name or re.search(r"[ \t\r\n]", name)), None)
        if bad is not None:
            raise InputError(f"Berkeley text cannot hold the {what} {bad!r}, which is empty or has a blank in it")
    names = [f"{label}_{k}" for label, k in pairs]
    if START in names and names[pcfg.start] != START:
        raise InputError(f"Berkeley text starts at {START}, which this grammar uses for another symbol; rename that")
    if is_closed(pcfg.unary, np.exp(pcfg.unary_logp)):
        raise InputError("Berkeley text cannot hold a symbol that rewrites only to itself; remove it first")
    with atomic_path(targets[0]) as temporary:
        _write(temporary, targets[0], _grammar_lines(pcfg, names))
    with atomic_path(targets[1]) as temporary:
        _write(temporary, targets[1], _lexicon_lines(pcfg, pairs))
    if len(targets) > 2:
        lines = (f"{label}\t{tree}\n" for label, tree in pcfg.meta["splits"].items())
        with atomic_path(targets[2]) as temporary:
            _write(temporary, targets[2], lines)


def _write(temporary: Path, target: Path, lines: Iterator[str]) -> None:
    with temporary.open("wb") as raw:
        if target.suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as stream:
                stream.writelines(line.encode() for line in lines)
        else:
            raw.writelines(line.encode() for line in lines)


def _grammar_lines(pcfg: GrammarRules, names: list[str]) -> Iterator[str]:
    if names[pcfg.start] != START:
        yield f"{START} -> {names[pcfg.start]} 1.0\n"
    for rules, logp in ((pcfg.unary, pcfg.unary_logp), (pcfg.binary, pcfg.binary_logp)):
        order = np.lexsort((rules[:, 0], rules[:, 0] != pcfg.start))
        for rule, p in zip(rules[order].tolist(), np.exp(logp[order]).tolist(), strict=True):
            yield f"{names[rule[0]]} -> {' '.join(names[i] for i in rule[1:])} {p!r}\n"


def _lexicon_lines(pcfg: GrammarRules, pairs: list[tuple[str, int]]) -> Iterator[str]:
    sizes: dict[str, int] = {}
    for label, k in pairs:
        sizes[label] = max(sizes.get(label, 0), k + 1)
    tags = {label: i for i, label in enumerate(sizes)}
    tag = np.array([tags[label] for label, _ in pairs], dtype=np.int64)
    parents: Int32Array = pcfg.lexical[:, 0]
    order = np.lexsort((pcfg.lexical[:, 1], tag[parents]))
    group = np.stack([tag[parents], pcfg.lexical[:, 1]])[:, order]
    heads: list[int] = np.flatnonzero(np.append(True, (np.diff(group) != 0).any(axis=0))).tolist() if len(order) else []
    prob, state = np.exp(pcfg.lexical_logp[order]).tolist(), parents[order].tolist()
    for low, high in zip(heads, [*heads[1:], len(order)], strict=True):
        label = pairs[state[low]][0]
        vector = [0.0] * sizes[label]
        for i in range(low, high):
            vector[pairs[state[i]][1]] = prob[i]
        yield f"{label} {pcfg.terminals[int(group[1, low])]} {vector!r}\n"
