"""Projections of a split grammar to the coarser levels of its split trees (Petrov and Klein 2007)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from truesource.grammar.estimate.split_merge.parameters import SplitTree
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError


class Projection(NamedTuple):
    """A split grammar at a coarser level."""

    pcfg: PCFG
    symbol_of: IntArray  #: (S,) symbol of each symbol of the split grammar; -1 for symbols that no derivation uses


def n_levels(pcfg: PCFG) -> int:
    """Return the number of levels that a split grammar projects to: 1 for a grammar that was never split.

    Raises:
        InputError: the grammar has no split trees.
    """
    return 1 + max(map(_depth, _split_trees(pcfg).values()))


def project(pcfg: PCFG, level: int) -> PCFG:
    """Project a grammar to the branches of its split trees at a level (Petrov and Klein 2007, section 3.1).

    A rule's probability is its expected share among the rules of its parent: ``sum E[A] p(A -> B C)`` over the fine
    rules that project to it, over ``sum E[A]`` over the fine symbols of the parent. This is the maximum-likelihood
    grammar at that level for an infinite treebank of the fine grammar: it has the expected counts of the fine grammar
    for all its rules and symbols.

    Args:
        pcfg: result of `split_merge`, or a projection of one.
        level: 0 (the labels of the treebank) to ``n_levels(pcfg) - 1`` (the grammar itself, less unreachable symbols).

    Returns:
        The coarse grammar. At level 0 symbols are named by their label, else ``NP-j`` for the j-th branch of ``NP``;
        ``meta["split_trees"]`` ends at the level, and ``meta["level"]`` names it.

    Raises:
        InputError: the grammar has no split trees or no such level, or its expected counts are infinite.
    """
    return projection(pcfg, level).pcfg


def projection(pcfg: PCFG, level: int) -> Projection:
    """Return the result of `project`, and the coarse symbol of each symbol; same arguments and errors."""
    trees = _split_trees(pcfg)
    deepest = n_levels(pcfg) - 1
    if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= deepest:
        raise InputError(f"this grammar has levels 0 to {deepest}, got {level!r}")
    counts = expected_counts(pcfg)
    symbol_of, names, labels = _coarse_symbols(pcfg, trees, level, counts.symbols > 0.0)
    tables: dict[str, Int32Array] = {}
    weights: dict[str, FloatArray] = {}
    totals = np.zeros(len(names))
    for kind, (rules, _) in zip(("binary", "unary", "lexical"), pcfg.tables(), strict=True):
        used = np.flatnonzero(counts.symbols[rules[:, 0]] > 0.0)
        coarse = symbol_of[rules[used]] if kind != "lexical" else rules[used].astype(np.int64)
        coarse[:, 0] = symbol_of[rules[used, 0]]
        sizes = tuple(coarse.max(axis=0, initial=0) + 1)
        keys, place = np.unique(np.ravel_multi_index(tuple(coarse.T), sizes), return_inverse=True)
        distinct = np.stack(np.unravel_index(keys, sizes), axis=1)
        sums = np.bincount(place, weights=getattr(counts, kind)[used], minlength=len(distinct))
        weight = np.asarray(sums, dtype=np.float64)
        positive = weight > 0.0
        tables[kind], weights[kind] = distinct[positive].astype(np.int32), weight[positive]
        np.add.at(totals, tables[kind][:, 0], weights[kind])
    logps = {
        f"{kind}_logp": np.log(np.minimum(weight / totals[tables[kind][:, 0]], 1.0)) for kind, weight in weights.items()
    }
    meta = {**pcfg.meta, "split_trees": {name: _cut(tree, level) for name, tree in trees.items()}, "level": level}
    coarse_pcfg = replace(
        pcfg,
        symbols=tuple(names),
        labels=tuple(labels),
        vocabulary=pcfg.vocabulary,
        start=int(symbol_of[pcfg.start]),
        binary=tables["binary"],
        unary=tables["unary"],
        lexical=tables["lexical"],
        meta=meta,
        **logps,
    )
    return Projection(coarse_pcfg, symbol_of)


def _split_trees(pcfg: PCFG) -> dict[str, SplitTree]:
    trees = pcfg.meta.get("split_trees")
    if not trees:
        raise InputError("the grammar has no split trees; only split-merge training makes grammars with projections")
    return dict(trees)


def _depth(tree: SplitTree) -> int:
    return 0 if isinstance(tree, int) else 1 + max(map(_depth, tree))


def _branches(tree: SplitTree, level: int) -> list[list[int]]:
    """Return the substates under each branch at a level, left to right; a leaf above the level is its own branch."""
    if isinstance(tree, int):
        return [[tree]]
    if level == 0:
        return [[leaf for branch in tree for leaves in _branches(branch, 0) for leaf in leaves]]
    return [part for branch in tree for part in _branches(branch, level - 1)]


def _cut(tree: SplitTree, level: int) -> SplitTree:
    """Return the split tree down to a level, its leaves numbered from the left."""
    numbers = iter(range(len(_branches(tree, level))))

    def cut(branch: SplitTree, left: int) -> SplitTree:
        if isinstance(branch, int) or left == 0:
            return next(numbers)
        return [cut(part, left - 1) for part in branch]

    return cut(tree, level)


def _coarse_symbols(
    pcfg: PCFG, trees: dict[str, SplitTree], level: int, used: np.ndarray[Any, np.dtype[np.bool_]]
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[str], list[str]]:
    """Return the number of each symbol's coarse symbol, -1 for unused ones; names and labels of the coarse symbols."""
    branch_of = {
        name: {leaf: j for j, leaves in enumerate(_branches(tree, level)) for leaf in leaves}
        for name, tree in trees.items()
    }
    number: dict[str, int] = {}
    labels: list[str] = []
    result = np.full(len(pcfg.symbols), -1, dtype=np.int64)
    for i, symbol in enumerate(pcfg.symbols):
        if not used[i]:
            continue
        name, substate = _parts(symbol, trees)
        j = branch_of[name].get(substate)
        if j is None:
            raise InputError(f"the split tree of {name!r} does not have the substate of the symbol {symbol!r}")
        whole = level == 0 or symbol == name
        coarse = name if whole else f"{name}-{j}"
        if coarse not in number:
            number[coarse] = len(labels)
            labels.append(pcfg.labels[i])
        result[i] = number[coarse]
    return result, list(number), labels


def _parts(symbol: str, trees: dict[str, SplitTree]) -> tuple[str, int]:
    """Return the treebank symbol and substate of ``NP-3``; substate 0 for a symbol without a number."""
    name, _, number = symbol.rpartition("-")
    if name in trees and number.isdecimal():
        return name, int(number)
    if symbol in trees:
        return symbol, 0
    raise InputError(f"the symbol {symbol!r} has no split tree")
