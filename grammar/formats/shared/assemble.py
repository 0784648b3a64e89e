"""Collecting rules as numbers while a file is read, and making a grammar of them."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError

log = logging.getLogger("truesource.grammar")
Tables = list[tuple[Int32Array, FloatArray]]
ROUNDING = 1e-11  #: a row this near to one is proper; sums of 50,000 doubles are no better


class Rules:
    """Rules as they are read: numbers of symbols and words, and weights. Equal rules add up."""

    def __init__(self, first: Iterable[str] = ()) -> None:
        self.symbols: dict[str, int] = {}
        self.words: dict[str, int] = {}
        self.columns = (array("i"), array("i"), array("i"))  #: binary, unary, lexical rules one after the other
        self.weights = (array("d"), array("d"), array("d"))
        for name in first:
            self.symbol(name)

    def symbol(self, name: str) -> int:
        """Number of a symbol, a new one at its first use."""
        return self.symbols.setdefault(name, len(self.symbols))

    def word(self, name: str) -> int:
        """Number of a word, a new one at its first use."""
        return self.words.setdefault(name, len(self.words))

    def add(self, kind: int, rule: tuple[int, ...], weight: float) -> None:
        """One rule of a kind (0 binary, 1 unary, 2 lexical)."""
        self.columns[kind].extend(rule)
        self.weights[kind].append(weight)

    def tables(self) -> Tables:
        """Rules (R, width) and weights (R,) of the three kinds, each rule once."""
        found: Tables = []
        for column, weight, width in zip(self.columns, self.weights, (3, 2, 2), strict=True):
            rules = np.array(column, dtype=np.int32).reshape(-1, width)
            base = max(len(self.symbols), len(self.words), 1)
            keys = rules[:, 0].astype(np.int64)
            for other in rules.T[1:]:
                keys = keys * base + other
            _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
            total = np.bincount(inverse, weights=np.array(weight, dtype=np.float64), minlength=len(first))
            found.append((rules[first], total.astype(np.float64)))
        return found


def assemble(
    rules: Rules,
    *,
    start: str,
    labels: Mapping[str, str],
    divide: bool,
    path: str | Path | None,
    meta: Mapping[str, Any] | None = None,
    tables: Tables | None = None,
) -> GrammarRules:
    """The grammar of these rules.

    With ``divide`` numbers are weights: each symbol's are divided by their sum, once; rows within rounding of one
    stay as they are. How far that was is logged and stands in ``meta["normalised"]``: ``symbols`` (how many),
    ``lowest`` and ``highest`` sum, ``worst`` symbol.

    Args:
        rules: what was read.
        start: name of the start symbol.
        labels: treebank label of each symbol, itself where absent.
        divide: see above.
        path: named in errors.
        meta: JSON values that say how the grammar was made.
        tables: rules in place of those in ``rules``.

    Raises:
        InputError: the start symbol has no rules, or what `GrammarRules` refuses.
    """
    names = list(rules.symbols)
    tables = tables or rules.tables()
    sums = np.zeros(len(names))
    for table, weights in tables:
        sums += np.bincount(table[:, 0], weights=weights, minlength=len(names))
    if start not in rules.symbols or not sums[rules.symbols[start]] > 0.0:
        raise InputError(f"the start symbol {start!r} has no rules; name another", path)
    off = (sums > 0.0) & (np.abs(sums - 1.0) > ROUNDING) & divide
    scale = np.where(off, sums, 1.0)
    found = dict(meta or {})
    if off.any():
        found["normalised"] = _report({names[i]: float(sums[i]) for i in np.flatnonzero(off)}, path)
    (binary, p), (unary, q), (lexical, r) = tables
    try:
        return GrammarRules(
            tuple(names),
            tuple(rules.words),
            rules.symbols[start],
            binary,
            np.log(p / scale[binary[:, 0]]),
            unary,
            np.log(q / scale[unary[:, 0]]),
            lexical,
            np.log(r / scale[lexical[:, 0]]),
            tuple(labels.get(name, name) for name in names),
            found,
        )
    except InputError as error:
        raise InputError(str(error), path) from error


def _report(sums: Mapping[str, float], path: str | Path | None) -> dict[str, Any]:
    """Say which sums the weights were divided by; those within 1e-9 of one are rounding and not worth a line."""
    worst = max(sums, key=lambda name: abs(sums[name] - 1.0))
    found = {"symbols": len(sums), "lowest": min(sums.values()), "highest": max(sums.values()), "worst": worst}
    if abs(sums[worst] - 1.0) > 1e-9:
        log.info(
            "%s: the rules of %d symbols did not sum to one; divided by their sums, %.6g to %.6g (furthest: %s)",
            "grammar" if path is None else path,
            found["symbols"],
            found["lowest"],
            found["highest"],
            worst,
        )
    return found
