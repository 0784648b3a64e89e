"""Collect rules while a file is read, and assemble their grammar."""

from __future__ import annotations

import logging
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from truesource.grammar.rules import ROW_TOLERANCE, GrammarRules, require_proper
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import counted

log = logging.getLogger("truesource.grammar")
NEAR_ONE = 1e-11  #: a row this near to one is proper; sums of 50,000 doubles are no better
Tables = list[tuple[Int32Array, FloatArray]]


class Rules:
    """Rules read so far: numbers of symbols and words, and weights. Weights of equal rules are added."""

    def __init__(self, first: Iterable[str] = ()) -> None:
        self.symbols: dict[str, int] = {}
        self.words: dict[str, int] = {}
        self.columns = (array("i"), array("i"), array("i"))  #: binary, unary, lexical rules one after the other
        self.weights = (array("d"), array("d"), array("d"))
        for name in first:
            self.symbol(name)

    def symbol(self, name: str) -> int:
        """Return the number of a symbol; the first use assigns a new one."""
        return self.symbols.setdefault(name, len(self.symbols))

    def word(self, name: str) -> int:
        """Return the number of a word; the first use assigns a new one."""
        return self.words.setdefault(name, len(self.words))

    def add(self, kind: int, rule: tuple[int, ...], weight: float) -> None:
        """Add one rule of a kind (0 binary, 1 unary, 2 lexical)."""
        self.columns[kind].extend(rule)
        self.weights[kind].append(weight)

    def tables(self) -> Tables:
        """Return rules (R, width) and weights (R,) of the three kinds, each rule once."""
        result: Tables = []
        for column, weight, width in zip(self.columns, self.weights, (3, 2, 2), strict=True):
            rules = np.array(column, dtype=np.int32).reshape(-1, width)
            base = max(len(self.symbols), len(self.words), 1)
            keys = rules[:, 0].astype(np.int64)
            for other in rules.T[1:]:
                keys = keys * base + other
            _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
            total = np.bincount(inverse, weights=np.array(weight, dtype=np.float64), minlength=len(first))
            result.append((rules[first], total.astype(np.float64)))
        return result


@dataclass(frozen=True)
class RowScaling:
    """The step from weights of rules to probabilities; `report` records the sums that were divided by."""

    divide: bool = False  #: allow any positive weights
    tolerance: float = ROW_TOLERANCE  #: how far probabilities may sum from one
    path: str | Path | None = None  #: named in errors
    report: dict[str, object] = field(default_factory=dict)  #: entry ``normalised`` of the grammar's ``meta``

    def apply(
        self, rules: Rules, tables: Tables, empty: Mapping[int, float] | None = None
    ) -> tuple[Tables, dict[int, float]]:
        """Divide the weights of each symbol by their sum.

        Sums within rounding of one stay, and so do those within 1e-6 of it, which `GrammarRules` divides.

        Args:
            rules: names of the symbols.
            tables: rules of the three kinds with their weights.
            empty: weight of the empty rule of each symbol that has one.

        Returns:
            The tables with probabilities, and the probabilities of the empty rules.

        Raises:
            InputError: the probabilities of a symbol sum to one neither exactly nor within the tolerance.
        """
        empty = empty or {}
        sums = np.zeros(len(rules.symbols))
        for table, weights in tables:
            sums += np.bincount(table[:, 0], weights=weights, minlength=len(sums))
        for state, weight in empty.items():
            sums[state] += weight
        gap = np.abs(sums - 1.0)
        names = list(rules.symbols)
        if empty and not self.divide:
            require_proper(names, sums, (sums > 0.0) & (gap > self.tolerance), self.path)
        least = NEAR_ONE if self.divide or empty else ROW_TOLERANCE
        off = (sums > 0.0) & (gap > least) & (self.divide | (gap <= self.tolerance))
        if off.any():
            self.report.update(_report({names[i]: float(sums[i]) for i in np.flatnonzero(off)}, self.path))
        scale = np.where(off, sums, 1.0)
        scaled = [(table, weights / scale[table[:, 0]]) for table, weights in tables]
        return scaled, {state: weight / float(scale[state]) for state, weight in empty.items()}


def assemble(
    rules: Rules,
    *,
    start: str,
    labels: Mapping[str, str],
    scaling: RowScaling,
    meta: Mapping[str, Any] | None = None,
    tables: Tables | None = None,
) -> GrammarRules:
    """Return the grammar of these rules.

    The deviation of divided sums of weights from one is logged and recorded in ``meta["normalised"]``:
    ``symbols`` (their number), ``lowest`` and ``highest`` sum, ``worst`` symbol.

    Args:
        rules: what was read.
        start: name of the start symbol.
        labels: treebank label of each symbol, itself where absent.
        scaling: how weights become probabilities; its path is named in errors.
        meta: JSON values that say how the grammar was made.
        tables: rules in place of those in ``rules``.

    Raises:
        InputError: the start symbol has no rules, or what `GrammarRules` refuses.
    """
    names = list(rules.symbols)
    if tables is None:
        tables = rules.tables()
    first = rules.symbols.get(start)
    if first is None or not any((table[:, 0] == first).any() for table, _ in tables):
        raise InputError(f"the start symbol {start!r} has no rules; name another", scaling.path)
    ((binary, p), (unary, q), (lexical, r)), _ = scaling.apply(rules, tables)
    normalised = {"normalised": scaling.report} if scaling.report else {}
    try:
        return GrammarRules(
            tuple(names),
            tuple(rules.words),
            first,
            binary,
            np.log(p),
            unary,
            np.log(q),
            lexical,
            np.log(r),
            tuple(labels.get(name, name) for name in names),
            {**(meta or {}), **normalised},
        )
    except InputError as error:
        raise InputError(str(error), scaling.path) from error


def _report(sums: Mapping[str, float], path: str | Path | None) -> dict[str, object]:
    """Report the sums that weights were divided by; sums within 1e-9 of one are rounding and are not reported."""
    worst = max(sums, key=lambda name: abs(sums[name] - 1.0))
    result = {"symbols": len(sums), "lowest": min(sums.values()), "highest": max(sums.values()), "worst": worst}
    if abs(sums[worst] - 1.0) > 1e-9:
        log.info(
            "%s: the rules of %s did not sum to one; divided by their sums, %.6g to %.6g (furthest: %s)",
            "grammar" if path is None else path,
            counted(len(sums), "symbol"),
            result["lowest"],
            result["highest"],
            worst,
        )
    return result
